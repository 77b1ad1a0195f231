"""What a search means, said a second time and as plainly as can be: one row and one term after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.search_values import Between, Compared, Is, Like, Missing, Test
from noonday.domain.searching import FREE, Term

COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def holds(terms: Iterable[Term], values: dict[str, list[Any]]) -> bool:
    """`values`: what a row has under each field; an empty list if it has nothing there."""
    return all(_passes(term, values[term.field]) != term.negated for term in terms)


def _passes(term: Term, values: list[Any]) -> bool:
    return any(_is(test, values) for test in term.tests)


def _is(test: Test, values: list[Any]) -> bool:
    if isinstance(test, Missing):
        return not values
    return any(_one(test, value) for value in values)


def _one(test: Test, value: Any) -> bool:
    match test:
        case Is(wanted):
            return bool(value == wanted)
        case Like(pieces):
            pattern = ".*".join(map(re.escape, pieces))
            return re.fullmatch(pattern, str(value), re.IGNORECASE | re.DOTALL) is not None
        case Compared(op, than):
            return bool(COMPARE[op](value, than))
        case Between(first, second):
            return bool(first <= value < second)
    raise AssertionError(test)


def _some(value: Any) -> list[Any]:
    return [] if value is None else [value]


def of_job(job: Job, owner: str | None) -> dict[str, list[Any]]:
    return {
        FREE: [job.name],
        "status": [job.state.value],
        "last_status": _some(job.last_status),
        "name": [job.name],
        "id": [job.id],
        "tag": list(job.tags),
        "service": _some(owner),
        "source": _some(job.source_id),
        "url": _some(getattr(job.target, "url", None)),
        "type": [job.timing.schedule.type],
        "target": [job.target.type],
        "timezone": [job.timing.timezone],
        "priority": [job.lane.value],
        "version": [job.scheduler_version],
        "enabled": [job.enabled],
        "paused": [job.paused],
        "next": _some(job.next_run_at if job.armed else None),
        "last": _some(job.last_run_at),
        "created": [job.created_at],
        "updated": [job.updated_at],
    }


def of_execution(run: Execution, job: Job, owner: str | None) -> dict[str, list[Any]]:
    return {
        FREE: [job.name, *_some(run.error)],
        "status": [run.state.value],
        "job": [job.name, job.id],
        "id": [run.id],
        "tag": list(job.tags),
        "service": _some(owner),
        "cause": [run.cause.value],
        "by": _some(run.triggered_by),
        "skip": _some(run.skip_reason and run.skip_reason.value),
        "wait": _some(run.wait_reason and run.wait_reason.value),
        "instance": _some(run.instance_id),
        "error": _some(run.error),
        "priority": [run.lane.value],
        "version": [run.road.value],
        "number": [run.number],
        "attempt": [run.attempt],
        "due": [run.scheduled_for],
        "created": [run.created_at],
        "started": _some(run.started_at),
        "ended": _some(run.completed_at),
        "took": _between(run.started_at, run.completed_at),
        "late": _between(run.scheduled_for, run.started_at),
    }


def _between(first: Any, last: Any) -> list[timedelta]:
    return [] if first is None or last is None else [last - first]
