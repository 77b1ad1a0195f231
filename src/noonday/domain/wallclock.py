"""From readings of a zone's wall clock to instants: what becomes of times that are missing or happen twice.

Two rules, those of Debian's cron. A fixed time is due once on the day the clocks change: a missing one when
the gap ends, a doubled one the first time. A wildcard is due whenever the wall clock shows a reading that
matches: a missing one never, a doubled one twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
HORIZON = datetime(9999, 1, 1, tzinfo=UTC)  # nothing is due from here on, so that no sum overflows

SECOND = timedelta(seconds=1)
TICK = timedelta.resolution

Walls = Callable[[datetime], Iterator[datetime]]  # the wanted readings (naive) strictly after one, in order


@lru_cache(maxsize=4096)
def changes(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """The instants of a UTC year at which the zone's offset changes.

    Looks at each day and halves the days that differ: since 1970 no zone changed twice within a week.
    """
    if year >= HORIZON.year:
        return ()
    found = []
    low = datetime(year, 1, 1, tzinfo=UTC) - SECOND
    last = datetime(year + 1, 1, 1, tzinfo=UTC) - SECOND
    offset = offset_at(zone, low)
    while low < last:
        high = min(low + timedelta(days=1), last)
        later = offset_at(zone, high)
        if later != offset:
            found.append(_change_between(zone, low, high))
        low, offset = high, later
    return tuple(found)


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def reading_at(zone: ZoneInfo, instant: datetime) -> datetime:
    """What the wall clock shows: naive, in whole seconds."""
    return instant.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)


def once(walls: Walls, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The instants strictly after `after` by the rule for fixed times."""
    last = after
    for wall in walls(_latest_reading(zone, after)):
        due = _first_instant(zone, wall)
        if due > last:
            yield due
            last = due


def each(walls: Walls, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The instants strictly after `after` by the rule for wildcards."""
    seen = reading_at(zone, after)
    offset, edge = offset_at(zone, after), _span_end(zone, after)
    wanted = walls(seen)
    wall = next(wanted, None)
    while wall is not None:
        due = (wall - offset).replace(tzinfo=UTC)
        if due < edge:
            yield due
            seen, wall = wall, next(wanted, None)
            continue
        if edge >= HORIZON:
            return
        shown = reading_at(zone, edge)
        if not seen < shown <= wall:  # set back over readings passed before, or forward over the wanted one
            seen = shown - SECOND
            wanted = walls(seen)
            wall = next(wanted, None)
        offset, edge = offset_at(zone, edge), _span_end(zone, edge)


def _span_end(zone: ZoneInfo, instant: datetime) -> datetime:
    """Until when the present offset surely holds: the next change, or the end of the year before it."""
    edges = changes(zone, instant.year)
    place = bisect_right(edges, instant)
    return edges[place] if place < len(edges) else datetime(instant.year + 1, 1, 1, tzinfo=UTC)


def _change_after(zone: ZoneInfo, instant: datetime) -> datetime:
    """The next change; to be asked only where one is known to follow."""
    edge = _span_end(zone, instant)
    while offset_at(zone, edge) == offset_at(zone, edge - SECOND):
        edge = _span_end(zone, edge)
    return edge


def _change_between(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    before = offset_at(zone, low)
    while high - low > SECOND:
        middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _first_instant(zone: ZoneInfo, wall: datetime) -> datetime:
    due = wall.replace(tzinfo=zone).astimezone(UTC)
    if reading_at(zone, due) == wall:
        return due
    # Missing: with fold=1 a reading in a gap is taken by the offset after it, and so lies before the change.
    return _change_after(zone, wall.replace(tzinfo=zone, fold=1).astimezone(UTC))


def _latest_reading(zone: ZoneInfo, instant: datetime) -> datetime:
    """The latest reading shown so far; in a repeated hour that is the end of its first showing."""
    local = instant.astimezone(zone)
    if not local.fold:
        return local.replace(tzinfo=None, microsecond=0)
    first = local.replace(fold=0).astimezone(UTC)
    return reading_at(zone, _change_after(zone, first) - SECOND)
