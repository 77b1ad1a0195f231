"""Bulk actions on the wire: what is asked and how the answers look, for the API and the CLI alike."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.bodies import Body
from noonday.api.fields import Label
from noonday.control.bulk import MOST, Action, Done, Preview
from noonday.domain import searching
from noonday.domain.job import JobState

__all__ = ["BulkBody", "BulkDone", "BulkPreview", "done_json", "preview_json"]


class BulkBody(Body):
    """What to do with which jobs: those that a search finds, those named, or all."""

    action: Annotated[Action, Field(strict=False)]
    filter: Annotated[str, Field(max_length=searching.LONGEST)] | None = Field(
        None, description="a search, as `q` of the list"
    )
    jobs: Annotated[list[Label], Field(max_length=1000)] | None = Field(None, description="names or ids")
    all: bool = Field(False, description="every job there is, in place of a filter")
    dry_run: bool = Field(False, description="only say which jobs it would be")
    expect: Annotated[int, Field(ge=0, le=MOST)] | None = Field(
        None, description="409, and nothing is done, if another number of jobs match"
    )


class BulkJob(Shape):
    job_id: str
    name: str
    status: JobState
    is_paused: bool
    schedule_enabled: bool


class BulkPreview(Shape):
    """What a bulk action would be done to; of many jobs the oldest hundred are listed."""

    dry_run: Literal[True]
    action: Action
    matched: int
    jobs: list[BulkJob]


class BulkFailure(Shape):
    """`job_id` is null where there is no such job."""

    job_id: str | None
    name: str
    error: str


class BulkDone(Shape):
    """`unchanged` were as wanted already, or ceased to match meanwhile."""

    dry_run: Literal[False]
    action: Action
    matched: int
    done: int
    unchanged: int
    failed: list[BulkFailure]


def preview_json(action: Action, seen: Preview) -> dict[str, Any]:
    found = [
        {
            "job_id": job.id,
            "name": job.name,
            "status": job.state.value,
            "is_paused": job.paused,
            "schedule_enabled": job.enabled,
        }
        for job in seen.jobs
    ]
    return {"dry_run": True, "action": action.value, "matched": seen.matched, "jobs": found}


def done_json(action: Action, done: Done) -> dict[str, Any]:
    failed = [{"job_id": one.job_id, "name": one.name, "error": one.error} for one in done.failed]
    return {
        "dry_run": False,
        "action": action.value,
        "matched": done.matched,
        "done": done.done,
        "unchanged": done.unchanged,
        "failed": failed,
    }
