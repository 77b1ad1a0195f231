"""Circuit breakers on the wire: how they look, for the API and the CLI alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from noonday.api.answers import Shape
from noonday.api.schedules import instant_text
from noonday.control.breakers import Seen
from noonday.domain.breaker import BreakerState

__all__ = ["BreakerPage", "BreakerShape", "breaker_json"]


class BreakerShape(Shape):
    """The breaker of one domain; `retry_at`: when the next call may go out, null while it is closed."""

    domain: str
    state: BreakerState
    failures: int
    opened_at: datetime | None
    probe_until: datetime | None
    retry_at: datetime | None
    trips: int
    last_error: str | None
    updated_at: datetime


class BreakerPage(Shape):
    breakers: list[BreakerShape]
    parked: int
    total: int
    limit: int
    offset: int


def breaker_json(seen: Seen) -> dict[str, Any]:
    row, breaker = seen.row, seen.row.breaker
    return {
        "domain": row.domain,
        "state": breaker.state.value,
        "failures": breaker.failures,
        "opened_at": instant_text(breaker.opened_at),
        "probe_until": instant_text(breaker.probe_until),
        "retry_at": instant_text(seen.retry_at),
        "trips": row.trips,
        "last_error": row.last_error,
        "updated_at": instant_text(row.updated_at),
    }
