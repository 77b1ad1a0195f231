"""Who else starts in the same minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from noonday.api.paging import own_service
from noonday.api.services import Services
from noonday.control.forecast import FARTHEST
from noonday.domain.access import Caller

__all__ = ["collisions"]

_MOST: Final = 200


async def collisions(ask: Services, who: Caller | None, at: datetime, own_id: str) -> tuple[str, ...]:
    """The names of the other jobs that start in that minute, as far as the caller may know them."""
    minute = at.replace(second=0, microsecond=0)
    if who is None or minute > ask.clock.now() + FARTHEST:
        return ()
    until = minute + timedelta(seconds=59, microseconds=999_999)
    found = await ask.forecasts.overall(minute, until, limit=_MOST, service=own_service(who))
    return tuple(dict.fromkeys(run.job.name for run in found.runs if run.job.id != own_id))
