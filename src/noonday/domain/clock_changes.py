"""Where the clocks change among a list of instants, told in words."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

__all__ = ["changes"]


def changes(zone: ZoneInfo, instants: list[datetime], *, elapsed: bool) -> list[str]:
    """A note wherever the offset changes between neighbours; `elapsed` = they come from an interval."""
    notes = []
    for earlier, later in pairwise(instants):
        before, after = earlier.astimezone(zone).utcoffset(), later.astimezone(zone).utcoffset()
        assert before is not None
        assert after is not None
        if before == after:
            continue
        at = _change(zone, earlier, later, after)
        old, new = (at + before).replace(tzinfo=None), (at + after).replace(tzinfo=None)
        names = f"{earlier.astimezone(zone).tzname()} → {later.astimezone(zone).tzname()}"
        way = "forward" if after > before else "back"
        notes.append(
            f"clocks go {way} on {old:%a %Y-%m-%d} from {old:%H:%M} to {new:%H:%M} ({names}): "
            + _rule(forward=after > before, elapsed=elapsed)
        )
    return notes


def _rule(*, forward: bool, elapsed: bool) -> str:
    if elapsed:
        return "an interval counts elapsed time, so the time of day shifts."
    if forward:
        return "a time of day in the gap runs once, right after it."
    return "a time of day that happens twice runs once."


def _change(zone: ZoneInfo, earlier: datetime, later: datetime, offset: timedelta) -> datetime:
    """The instant in (earlier, later] from which `offset` is in force until `later`."""
    day = timedelta(days=1)
    while later - day > earlier and (later - day).astimezone(zone).utcoffset() == offset:
        later -= day
    low, high = max(earlier, later - day), later
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high.replace(microsecond=0)
