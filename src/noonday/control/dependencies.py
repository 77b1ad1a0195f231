"""Whether the jobs a job depends on exist, and whether they run in a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from noonday.domain.dependency import find_cycle
from noonday.domain.errors import Conflict, Invalid, NotFound, Problem
from noonday.domain.job import Job, JobId
from noonday.store import jobs
from noonday.store.tables import job_dependencies
from noonday.store.tables import jobs as jobs_table

_FIELDS = ("depends_on", "on_success_of")


def resolved(conn: Connection, job: Job) -> Job:
    """The job with ids where names were given; refuses what does not exist and what makes a circle."""
    problems: list[Problem] = []
    found: dict[str, tuple[JobId, ...]] = {}
    for field in _FIELDS:
        parents: list[JobId] = []
        for place, reference in enumerate(getattr(job, field)):
            parent = _parent(conn, job, reference)
            if parent is None:
                problems.append(Problem(f"{field}[{place}]", f"there is no job {reference!r}"))
            elif parent not in parents:
                parents.append(parent)
        found[field] = tuple(parents)
    if problems:
        raise Invalid(*problems)
    made = replace(job, depends_on=found["depends_on"], on_success_of=found["on_success_of"])
    _refuse_circle(conn, made)
    return made


def _parent(conn: Connection, job: Job, reference: str) -> JobId | None:
    if reference in (job.id, job.name):
        return job.id
    try:
        # Held until the end, so that two changes at the same moment cannot close a circle between them.
        return jobs.lock(conn, reference).id
    except NotFound:
        return None


def _refuse_circle(conn: Connection, job: Job) -> None:
    parents = (*job.depends_on, *job.on_success_of)
    if not parents:
        return
    edges = {**jobs.edges_above(conn, set(parents) - {job.id}), job.id: parents}
    circle = find_cycle(edges, job.id)
    if circle is not None:
        field = "depends_on" if circle[1] in job.depends_on else "on_success_of"
        way = " → ".join(_names(conn, job, circle))
        raise Invalid(Problem(field, f"would run in a circle: {way}"))


def _names(conn: Connection, job: Job, ids: Sequence[JobId]) -> list[str]:
    others = {i: found.name for i in set(ids) - {job.id} if (found := jobs.get(conn, i)) is not None}
    return [job.name if i == job.id else others.get(i, i) for i in ids]


def refuse_if_needed(conn: Connection, job: Job) -> None:
    """A job that others wait for cannot go: they would wait for ever."""
    query = (
        select(jobs_table.c.name)
        .join(job_dependencies, job_dependencies.c.job_id == jobs_table.c.id)
        .where(job_dependencies.c.parent_id == job.id, jobs_table.c.id != job.id)
        .distinct()
        .limit(10)
    )
    names = [str(name) for name in conn.execute(query).scalars()]
    if names:
        raise Conflict(
            f"{job.name!r} is needed by {', '.join(sorted(names))}: change their dependencies first"
        )
