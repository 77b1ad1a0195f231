"""`?dry_run=true`: what a change would do, told field by field, with the times before and after."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query
from fastapi.responses import JSONResponse

from noonday.api.answers import Shape
from noonday.api.schemas import job_json
from noonday.api.services import Services
from noonday.api.shapes import JobShape
from noonday.control.jobs import Verb
from noonday.control.rehearsal import Rehearsal
from noonday.domain.job import Job

__all__ = ["DryRun", "Rehearsed", "changes", "rehearsal_json", "rehearsed"]

DryRun = Annotated[bool, Query(description="change nothing, only say what would change")]
# What follows from other fields, or grows with every change.
_DERIVED: Final = frozenset({"next_run_at", "next_runs", "schedule_words", "updated_at", "revision"})


class Change(Shape):
    field: str
    before: Any
    after: Any


class NextRuns(Shape):
    before: list[datetime]
    after: list[datetime]


class Rehearsed(Shape):
    """`job` is as it would be, null once it is deleted. A changed secret is named, not shown."""

    dry_run: Literal[True]
    job: JobShape | None
    changes: list[Change]
    next_runs: NextRuns


async def rehearsed(ask: Services, verb: Verb, job: str | None = None) -> JSONResponse:
    """The answer to a rehearsal of a verb, of the job that is there or of a new one."""
    return JSONResponse(rehearsal_json(await ask.jobs.rehearse(verb, job), ask.clock.now()))


def rehearsal_json(found: Rehearsal, now: datetime) -> dict[str, Any]:
    before, after = (job_json(one, now) if one else None for one in (found.before, found.after))
    return {
        "dry_run": True,
        "job": after,
        "changes": changes(found),
        "next_runs": {
            "before": before["next_runs"] if before else [],
            "after": after["next_runs"] if after else [],
        },
    }


def changes(found: Rehearsal) -> list[dict[str, Any]]:
    if found.before is None or found.after is None:
        names = {"before": _name(found.before), "after": _name(found.after)}
        return [{"field": "job", **names}]
    before, after = job_json(found.before), job_json(found.after)
    secretly = {
        name
        for name in ("target", "config", "metadata")
        if getattr(found.before, name) != getattr(found.after, name)
    }
    return [
        {"field": name, "before": before[name], "after": after[name]}
        for name in after
        if name not in _DERIVED and (before[name] != after[name] or name in secretly)
    ]


def _name(job: Job | None) -> str | None:
    return None if job is None else job.name
