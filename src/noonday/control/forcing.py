"""Whether a run beside the schedule may be, and where it takes its job."""

from __future__ import annotations

from sqlalchemy import Connection

from noonday.domain.errors import MoveRefused
from noonday.domain.job import Job, JobState, Overlap
from noonday.domain.lifecycle import move
from noonday.store.facts import open_work_of

__all__ = ["pending", "refuse_overlap"]


def pending(state: JobState) -> JobState:
    """To pending along the table of moves; what is completed is scheduled again first."""
    if state is JobState.COMPLETED:
        state = move(state, JobState.SCHEDULED)
    return move(state, JobState.PENDING)


def refuse_overlap(conn: Connection, job: Job) -> None:
    """A forced run that the job's policy would only skip is better refused at once."""
    if job.overlapping.overlap is not Overlap.SKIP:
        return
    work = open_work_of(conn, job)
    if work.running + work.forced >= job.overlapping.max_instances:
        what = "a run of it is going on" if work.running else "a forced run of it is about to start"
        hint = f"{what}, and its overlap is {job.overlapping.overlap} with max_instances"
        raise MoveRefused(job.state, JobState.PENDING, f"{hint} {job.overlapping.max_instances}")
