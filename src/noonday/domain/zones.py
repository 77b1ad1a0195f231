"""What a zone's rules are, in a form that can be kept and compared when the time-zone data changes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from noonday.domain.wallclock import changes, offset_at

YEARS = 10  # how far ahead a change of rules is looked for


def rules_mark(zone: str, year: int) -> str:
    """The same as long as the zone's offsets from this year on are; `year` goes before it, to compare by."""
    where = ZoneInfo(zone)
    offsets = [offset_at(where, datetime(year, 1, 1, tzinfo=UTC))]
    edges = [edge for later in range(YEARS) for edge in changes(where, year + later)]
    offsets += [offset_at(where, edge) for edge in edges]
    told = repr([*edges, *(offset.total_seconds() for offset in offsets)])
    return f"{year}:{hashlib.sha256(told.encode()).hexdigest()}"


def rules_changed(zone: str, mark: str) -> bool:
    return rules_mark(zone, int(mark.partition(":")[0])) != mark
