"""Until when a job is to be paused: what is offered, and what was typed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from noonday.domain.errors import Invalid, Problem
from noonday.web.forms import Fields

__all__ = ["Offer", "offers", "until_of"]

_MORNING: Final = time(9)


@dataclass(frozen=True, slots=True)
class Offer:
    words: str
    until: datetime


def offers(now: datetime, zone: ZoneInfo) -> list[Offer]:
    """On the reader's clock."""
    today = now.astimezone(zone).date()
    tomorrow, monday = today + timedelta(days=1), today + timedelta(days=7 - today.weekday())
    found = [
        Offer("for 1 hour", now + timedelta(hours=1)),
        Offer(f"until tomorrow {_MORNING:%H:%M}", datetime.combine(tomorrow, _MORNING, zone)),
    ]
    if monday != tomorrow:
        found.append(Offer(f"until Monday {_MORNING:%H:%M}", datetime.combine(monday, _MORNING, zone)))
    return found


def until_of(sent: Fields, zone: ZoneInfo) -> datetime | None:
    """An offer that was taken, or `until` on the reader's clock; None: until somebody resumes it."""
    text = sent.text("offer") or sent.text("until")
    if not text:
        return None
    try:
        typed = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(Problem("until", "is no time; write 2027-01-31T02:00")) from None
    return typed if typed.tzinfo else typed.replace(tzinfo=zone)
