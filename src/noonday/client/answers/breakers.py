"""What comes back: breakers. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from noonday.client.values import BreakerState

__all__ = ["Breaker", "BreakerPage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPage:
    breakers: list[Breaker]
    parked: int
    total: int
    limit: int
    offset: int
