"""What can be asked of each list: its fields, under the names that people know from the API."""

from __future__ import annotations

from typing import Final

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import Cause, ExecutionState, SkipReason, WaitReason
from noonday.domain.job import JobState, Lane
from noonday.domain.search_values import Field, Kind
from noonday.domain.searching import Searchable

__all__ = ["AUDIT", "BREAKERS", "EXECUTIONS", "JOBS"]

_SCHEDULES: Final = ("cron", "interval", "calendar", "immediate", "once", "event", "manual")
_ENDS: Final = tuple(state for state in ExecutionState if not state.open)
_TARGETS: Final = ("http", "service", "fetch", "python", "command")
_PRIORITIES: Final = {lane.name.lower(): lane.value for lane in Lane}


def _text(about: str, *, optional: bool = False) -> Field:
    return Field(kind=Kind.TEXT, about=about, optional=optional)


def _choice(choices: tuple[str, ...], about: str, *, optional: bool = False) -> Field:
    return Field(kind=Kind.CHOICE, about=about, choices=choices, optional=optional)


def _past(about: str, *, optional: bool = False) -> Field:
    return Field(kind=Kind.PAST, about=about, optional=optional)


_PRIORITY = Field(kind=Kind.NUMBER, about="1 high, 2 normal, 3 low", words=_PRIORITIES)

JOBS: Final = Searchable(
    fields={
        "status": _choice(tuple(JobState), "the job's state"),
        "last_status": _choice(_ENDS, "how its last run ended", optional=True),
        "name": _text("the whole name"),
        "id": _text("the id"),
        "tag": _text("one of the tags", optional=True),
        "service": _text("the service whose job it is", optional=True),
        "source": _text("`source_id`", optional=True),
        "url": _text("the URL that is called", optional=True),
        "type": _choice(_SCHEDULES, "the kind of schedule"),
        "target": _choice(_TARGETS, "what it runs"),
        "timezone": _text("the time zone"),
        "priority": _PRIORITY,
        "version": Field(kind=Kind.NUMBER, about="`scheduler_version`"),
        "enabled": Field(kind=Kind.FLAG, about="is its schedule switched on?"),
        "paused": Field(kind=Kind.FLAG, about="is it paused?"),
        "next": Field(kind=Kind.FUTURE, about="the next time it fires", optional=True),
        "last": _past("the start of its last run", optional=True),
        "created": _past("when it was made"),
        "updated": _past("when it was changed"),
    },
    aliases={
        "tags": "tag",
        "source_id": "source",
        "schedule_type": "type",
        "zone": "timezone",
        "scheduler_version": "version",
        "schedule_enabled": "enabled",
        "is_paused": "paused",
        "next_run_at": "next",
        "last_run_at": "last",
        "created_at": "created",
        "updated_at": "updated",
    },
)

EXECUTIONS: Final = Searchable(
    fields={
        "status": _choice(tuple(ExecutionState), "the execution's state"),
        "job": _text("the name or the id of the job"),
        "id": _text("the id"),
        "tag": _text("one of the job's tags", optional=True),
        "service": _text("the service whose job it is", optional=True),
        "cause": _choice(tuple(Cause), "why there is an execution"),
        "by": _text("who started it", optional=True),
        "skip": _choice(tuple(SkipReason), "why it was skipped", optional=True),
        "wait": _choice(tuple(WaitReason), "why it waits", optional=True),
        "instance": _text("the instance that ran it", optional=True),
        "error": _text("the whole error message", optional=True),
        "priority": _PRIORITY,
        "version": Field(kind=Kind.NUMBER, about="1: the database engine, 2: the streams engine"),
        "number": Field(kind=Kind.NUMBER, about="its number among the runs of its job"),
        "attempt": Field(kind=Kind.NUMBER, about="how many attempts it took"),
        "due": _past("when it was due"),
        "created": _past("when it was planned"),
        "started": _past("the start of its newest attempt", optional=True),
        "ended": _past("when it ended", optional=True),
        "took": Field(kind=Kind.SPAN, about="how long its newest attempt took", optional=True),
        "late": Field(kind=Kind.SPAN, about="from due to the start of its newest attempt", optional=True),
    },
    aliases={
        "name": "job",
        "job_id": "job",
        "triggered_by": "by",
        "skip_reason": "skip",
        "wait_reason": "wait",
        "scheduled_for": "due",
        "created_at": "created",
        "started_at": "started",
        "completed": "ended",
        "completed_at": "ended",
    },
)

AUDIT: Final = Searchable(
    fields={
        "actor": _text("who did it"),
        "action": _text("what was done: create, update, pause, …"),
        "kind": _text("of what: job, execution, breaker, …"),
        "subject": _text("the id of what was changed"),
        "job": _text("the name or the id of the job that was changed"),
        "revision": Field(kind=Kind.NUMBER, about="the revision that it made", optional=True),
        "at": _past("when"),
    },
    aliases={"by": "actor", "who": "actor", "subject_id": "subject", "created": "at"},
)

BREAKERS: Final = Searchable(
    fields={
        "domain": _text("the host, with its port where that is not the scheme's own"),
        "state": _choice(tuple(BreakerState), "closed, open or half-open"),
        "failures": Field(kind=Kind.NUMBER, about="failures in a row"),
        "trips": Field(kind=Kind.NUMBER, about="how often it opened"),
        "error": _text("the whole last error", optional=True),
        "opened": _past("when it opened", optional=True),
        "updated": _past("when something was last heard of it"),
    },
    aliases={"status": "state", "opened_at": "opened", "updated_at": "updated"},
)
