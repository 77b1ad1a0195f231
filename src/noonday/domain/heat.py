"""Hours and how full they are: which are the quietest, and how dark each is on a heat map."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from noonday.domain.load import Load

HOUR: Final = timedelta(hours=1)


def hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def quietest(load: Load, count: int) -> list[tuple[datetime, float]]:
    """The emptiest slots of the day, those with quiet neighbours first, in the order of time.

    The slot that has begun is none of them.
    """
    slots = load.starts
    beside = [slots[place - 1] + slots[(place + 1) % len(slots)] for place in range(len(slots))]
    best = sorted(range(1, len(slots)), key=lambda place: (slots[place], beside[place], place))[:count]
    return [(load.start + place * load.slot, slots[place]) for place in sorted(best)]


def level(value: float, lowest: float, peak: float, levels: int) -> int:
    """A shade from 0 (nothing) to `levels` (the peak).

    Small differences above a high floor are shaded as small differences: the scale is never narrower than a
    third of the peak.
    """
    if value <= 0 or peak <= 0:
        return 0
    floor = min(lowest, peak * 2 / 3)
    return 1 + round((levels - 1) * max(value - floor, 0) / (peak - floor))
