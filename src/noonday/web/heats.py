"""The heat map: hours of days in the reader's zone, each with its shade and where a click on it leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from noonday.domain.heat import HOUR, level

__all__ = ["LEVELS", "Cell", "Row", "heat_rows", "instant", "midnight", "runs_due"]

LEVELS: Final = 6


@dataclass(frozen=True, slots=True)
class Cell:
    at: datetime
    value: float
    level: int
    address: str

    @property
    def text(self) -> str:
        """Short enough for a small field: `0.4`, `12`, `3.1k`."""
        if self.value >= 1000:
            return f"{self.value / 1000:.1f}k"
        return f"{self.value:.1f}".removesuffix(".0") if self.value < 10 else f"{self.value:.0f}"


@dataclass(frozen=True, slots=True)
class Row:
    day: date
    cells: tuple[Cell | None, ...]  # 24 hours of the clock; None where nothing is shown


def heat_rows(
    values: Mapping[datetime, float],
    since: datetime,
    until: datetime,
    zone: ZoneInfo,
    address: Callable[[datetime], str],
) -> list[Row]:
    """An hour that the clock shows twice is one field with both; one that it skips has none."""
    found: dict[date, dict[int, tuple[datetime, float]]] = {}
    at = since
    while at < until:
        there = at.astimezone(zone)
        first, sofar = found.setdefault(there.date(), {}).get(there.hour, (at, 0.0))
        found[there.date()][there.hour] = (first, sofar + values.get(at, 0.0))
        at += HOUR
    every = [value for hours in found.values() for _, value in hours.values()]
    lowest, peak = min(every, default=0.0), max(every, default=0.0)

    def cell(seen: tuple[datetime, float] | None) -> Cell | None:
        return seen and Cell(seen[0], seen[1], level(seen[1], lowest, peak, LEVELS), address(seen[0]))

    return [
        Row(day, tuple(cell(hours.get(hour)) for hour in range(24))) for day, hours in sorted(found.items())
    ]


def midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def runs_due(since: datetime, span: timedelta, more: str = "") -> str:
    """The list of runs that were due in a span."""
    asked = f"due:>={instant(since)} due:<{instant(since + span)} {more}".strip()
    return f"/ui/runs?q={quote(asked)}"
