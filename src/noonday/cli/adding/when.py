"""When a job runs: schedule, zone, bounds and availability."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from noonday.api.schedules import timing_json
from noonday.cli import values
from noonday.cli.adding.texts import SOME, WHEN, Wire
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.schedule import Cron, Immediate, Manual, Schedule, Timing

__all__ = ["WhenFlags", "schedule_json"]

_TELLING = (
    "schedule_type",
    "cron_expression",
    "interval_minutes",
    "interval_type",
    "after_completion",
    "frequency",
    "time_config",
    "run_at",
)


@Parameter(name="*", group=WHEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class WhenFlags:
    """One of the first seven says when; the others bound it."""

    cron: str | None = None
    'A cron text of 5 or 6 fields, or @daily and its family: "0 2 * * mon".'
    every: str | None = None
    "A fixed interval: 30s, 5m, 2h, 1d."
    daily: str | None = None
    "Each day at this time of day: 02:00."
    at: str | None = None
    "Once, at this ISO time; without an offset it is meant in the job's zone."
    schedule: str | None = None
    'Anything that `noonday next` understands: "weekly mon 02:00", "hourly :15".'
    immediate: bool = False
    "Once, now."
    manual: bool = False
    "Only when asked."
    after_completion: bool = False
    "With --every: count from the end of a run to the next start."
    timezone: Annotated[str | None, Parameter(alias="--tz")] = None
    "Zone of the schedule and of times without an offset [UTC]."
    start_at: str | None = None
    "Not before this ISO time; a fixed interval counts from here."
    end_at: str | None = None
    "Not after this ISO time."
    max_runs: int | None = None
    "Stop after so many runs."
    jitter: str | None = None
    "Start up to so much later, the same for each due time: 30s."
    window: Annotated[tuple[str, ...], SOME] = ()
    'Run only then, in the job\'s zone: "mon-fri 08:00-18:00". May be repeated.'
    holidays: str | None = None
    "Not on public holidays of this country, or part of it: DE, DE-BY."
    exclude: Annotated[tuple[str, ...], SOME] = ()
    "Not on this date: 2027-12-24. May be repeated."
    outside: str | None = None
    "What becomes of a due time outside: skip, or move to the next opening [skip]."

    def wire(self) -> Wire:
        given: Wire = self._when()
        given |= {"timezone": self.timezone, "start_at": self.start_at, "end_at": self.end_at}
        given |= {"max_runs": self.max_runs, "jitter_seconds": values.seconds("--jitter", self.jitter)}
        given |= {"outside": self.outside, "windows": [_window(text) for text in self.window] or None}
        if self.holidays or self.exclude:
            given["calendar"] = {"holidays": self.holidays, "excluded_dates": list(self.exclude)}
        return {name: value for name, value in given.items() if value is not None}

    def _when(self) -> Wire:
        given = [flag for flag, value in self._choices().items() if value]
        if len(given) > 1:
            raise Invalid(Problem(" ".join(given), "say one of them: a job has one schedule"))
        if self.after_completion and not self.every:
            raise Invalid(Problem("--after-completion", "goes with --every"))
        if self.at:  # as it is: without an offset it is meant in the job's zone
            return {"schedule_type": "once", "run_at": self.at}
        found = self._schedule()
        return {} if found is None else schedule_json(found)

    def _schedule(self) -> Schedule | None:
        if self.every:
            return values.interval("--every", self.every, after_completion=self.after_completion)
        if self.daily:
            return values.schedule("--daily", f"daily {self.daily}")
        if self.schedule:
            zone = values.zone("--timezone", self.timezone or "UTC")
            return values.schedule("--schedule", self.schedule, zone)
        if self.cron:
            return Cron(expression=self.cron)
        return Immediate() if self.immediate else Manual() if self.manual else None

    def _choices(self) -> dict[str, str | bool | None]:
        return {
            "--cron": self.cron,
            "--every": self.every,
            "--daily": self.daily,
            "--at": self.at,
            "--schedule": self.schedule,
            "--immediate": self.immediate,
            "--manual": self.manual,
        }


def schedule_json(schedule: Schedule) -> Wire:
    """The fields of the wire that tell this schedule, without zone and bounds."""
    wire = timing_json(Timing(schedule=schedule, anchor_at=datetime.min.replace(tzinfo=UTC)))
    return {name: wire[name] for name in _TELLING if wire[name] is not None}


def _window(text: str) -> Wire:
    days, _, times = text.strip().rpartition(" ")
    start, dash, end = times.partition("-")
    if not dash:
        raise invalid("--window", text, "is no window: write mon-fri 08:00-18:00")
    return {"start": start, "end": end, **({"days": days} if days else {})}
