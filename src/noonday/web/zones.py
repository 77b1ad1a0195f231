"""The names of time zones, for lists to choose from; and moments that have a time in each of them."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Final
from zoneinfo import available_timezones

from pydantic import AfterValidator

__all__ = ["Moment", "zone_names"]

_FIRST: Final = 1970
_LAST: Final = 9000


def _within_reason(at: datetime) -> datetime:
    """At both ends of the calendar there are zones without such a time."""
    if not _FIRST <= at.year <= _LAST:
        raise ValueError(f"should be within the years {_FIRST} to {_LAST}")
    return at


Moment = Annotated[datetime, AfterValidator(_within_reason)]  # as an address names it


@lru_cache
def zone_names() -> tuple[str, ...]:
    """Those that people use: places, and UTC first."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ("UTC", *sorted(places))
