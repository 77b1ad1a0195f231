"""`noonday next`: any schedule in words, with its next times, without a database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from noonday.cli import output, tables, values
from noonday.cli.flags import Json
from noonday.clock import SystemClock
from noonday.domain.clock_changes import changes
from noonday.domain.errors import invalid
from noonday.domain.explain import explain
from noonday.domain.occurrences import check, upcoming
from noonday.domain.schedule import Cron, Interval, Timing

__all__ = ["Look", "next_times"]

_MOST = 1000
_HASH = re.compile(r"(?<![A-Za-z])H(?![A-Za-z])")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """From where and how far to look."""

    timezone: Annotated[str, Parameter(alias="--tz")] = "UTC"
    "Zone in which the schedule is meant [UTC]."
    count: Annotated[int, Parameter(alias="-n")] = 5
    "How many times to list [5]."
    start: Annotated[str | None, Parameter(name="--from")] = None
    "Look from this ISO time on instead of from now; without an offset it is meant in the zone."
    key: str = ""
    "What H is spread by: the job's id. Without it H stands for one sample place."


_FROM_NOW = Look()


def next_times(*expression: str, look: Look = _FROM_NOW, json: Json = False) -> None:
    """Explain a schedule in words and list its next times. Needs no database.

    Parameters
    ----------
    expression:
        A cron text ("0 2 * * mon", "@daily", "H H * * *"), or words: every 5m, hourly :15, daily 02:00,
        weekly mon 02:00, monthly 1 02:00, at 2027-01-31T02:00.
    look:
        From where and how far to look.
    """
    if not expression:
        raise invalid("expression", "", 'is missing: try noonday next "0 2 * * mon" --timezone Europe/Berlin')
    if not 1 <= look.count <= _MOST:
        raise invalid("--count", look.count, f"must lie between 1 and {_MOST}")
    zone = values.zone("--timezone", look.timezone)
    now = SystemClock().now().replace(microsecond=0)
    after = values.instant("--from", look.start, zone) if look.start else now
    timing = Timing(
        schedule=values.schedule("expression", " ".join(expression), zone),
        anchor_at=after,
        timezone=look.timezone,
    )
    check(timing)
    # An instant that lies exactly on --from is part of the answer; one that is passing now is not.
    beyond = after - timedelta(microseconds=1) if look.start else after
    times = upcoming(timing, look.key, beyond, look.count)
    words, notes = explain(timing, look.key), _notes(timing, look, after, times)
    if json:
        output.data(_document(timing, words, notes, times))
        return
    tables.title(words)
    if times:
        rows = [_row(n, at, zone, now) for n, at in enumerate(times, 1)]
        tables.table(["#", look.timezone, *(["UTC"] if look.timezone != "UTC" else []), "from now"], rows)
    for note in notes:
        output.say(f"note: {note}")


def _row(number: int, at: datetime, zone: ZoneInfo, now: datetime) -> list[str]:
    local = at.astimezone(zone)
    return [
        str(number),
        f"{local:%a %Y-%m-%d %H:%M:%S} {local.tzname()}",
        *([f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"] if zone.key != "UTC" else []),
        output.ago(at, now),
    ]


def _document(timing: Timing, words: str, notes: list[str], times: list[datetime]) -> dict[str, Any]:
    zone = ZoneInfo(timing.timezone)
    return {
        "schedule": timing.schedule.type,
        "explanation": words,
        "timezone": timing.timezone,
        "times": [
            {"at": at.isoformat().replace("+00:00", "Z"), "local": at.astimezone(zone).isoformat()}
            for at in times
        ],
        "notes": notes,
    }


def _notes(timing: Timing, look: Look, after: datetime, times: list[datetime]) -> list[str]:
    zone = ZoneInfo(timing.timezone)
    notes = changes(zone, [after, *times], elapsed=isinstance(timing.schedule, Interval))
    if isinstance(timing.schedule, Cron) and _HASH.search(timing.schedule.expression) and not look.key:
        notes.append("H is spread by each job's id; these times are a sample (--key ID for one job's own).")
    if len(times) < look.count:
        notes.append("No further times." if times else "It never fires by itself from there on.")
    return notes
