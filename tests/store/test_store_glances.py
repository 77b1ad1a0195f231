"""The newest executions at a glance: a stretch of the history at a time, nothing missed, nothing twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from noonday.domain import search_fields, searching
from noonday.domain.execution import Cause, Execution, ExecutionState
from noonday.domain.job import Job
from noonday.store import executions, glances, jobs
from noonday.store.database import Database
from noonday.store.glances import Glance
from noonday.store.history import ExecutionFilter
from noonday.store.pages import Mark
from tests.factories import NOON, a_job, an_execution


@pytest.fixture
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glances, "STRETCH", 10)


async def look(db: Database, q: str = "", limit: int = 50, after: Mark | None = None) -> Glance:
    wanted = ExecutionFilter(terms=searching.parse(q, search_fields.EXECUTIONS, NOON))
    return await db.read(lambda conn: glances.glance(conn, wanted, limit, after))


async def fill(db: Database, *made: tuple[Job, ExecutionState, Cause]) -> list[Execution]:
    """One execution each, oldest first."""
    found = [
        an_execution(
            job=job,
            state=state,
            cause=cause,
            scheduled_for=NOON + timedelta(minutes=place),
            available_at=NOON if state.open else None,
        )
        for place, (job, state, cause) in enumerate(made)
    ]

    def write(conn: Connection) -> None:
        for job in {job.id: job for job, _, _ in made}.values():
            jobs.add(conn, job)
        executions.plan(conn, found)

    await db.write(write)
    return found


DONE, FAILED, QUEUED = ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.QUEUED
BY_HAND, BY_TIME = Cause.MANUAL, Cause.SCHEDULE


async def test_facets_count_as_if_they_were_not_chosen(db: Database) -> None:
    job = a_job(name="digest")
    await fill(db, (job, DONE, BY_TIME), (job, DONE, BY_HAND), (job, FAILED, BY_TIME), (job, QUEUED, BY_HAND))
    found = await look(db, "status:failed,completed cause:schedule")
    assert [one.state for one in found.items] == [FAILED, DONE]
    assert found.total == 2
    assert found.states == {"completed": 1, "failed": 1}  # of those by schedule
    assert found.causes == {"schedule": 2, "manual": 1}  # of those that failed or were completed
    assert found.names == {job.id: "digest"}
    assert (found.whole, found.next) == (True, None)


@pytest.mark.usefixtures("_short_stretches")
@pytest.mark.parametrize("q", ["", "status:failed", "cause:manual"])
@pytest.mark.parametrize("limit", [3, 50])
async def test_stretches_join_without_a_seam(db: Database, q: str, limit: int) -> None:
    job = a_job()
    made = await fill(
        db, *((job, FAILED if n % 7 == 0 else DONE, BY_HAND if n % 11 == 0 else BY_TIME) for n in range(45))
    )
    wanted = {
        "": made,
        "status:failed": [one for one in made if one.state is FAILED],
        "cause:manual": [one for one in made if one.cause is BY_HAND],
    }[q]
    seen: list[str] = []
    after: Mark | None = None
    for _ in range(60):
        found = await look(db, q, limit, after)
        seen += [one.id for one in found.items]
        after = found.next
        if after is None:
            break
    assert seen == [one.id for one in reversed(wanted)]


@pytest.mark.usefixtures("_short_stretches")
async def test_a_job_is_found_however_long_ago_it_ran(db: Database) -> None:
    old, busy = a_job(name="yearly", tags=("Rare",)), a_job(name="busy")
    first, *_ = await fill(db, (old, DONE, BY_TIME), *[(busy, DONE, BY_TIME)] * 30)
    for q in ("job:yearly", f"job:{old.id}", "tag:rare", "job:year*"):
        assert [one.id for one in (await look(db, q)).items] == [first.id]
    assert not (await look(db, "-job:busy")).items  # not within this stretch
    assert (await look(db, "-job:busy")).next is not None


@pytest.mark.usefixtures("_short_stretches")
async def test_what_is_open_is_found_however_old(db: Database) -> None:
    job = a_job()
    first, *_ = await fill(db, (job, QUEUED, BY_TIME), *[(job, DONE, BY_TIME)] * 30)
    found = await look(db, "status:queued,running")
    assert [one.id for one in found.items] == [first.id]
    assert (found.total, found.next) == (1, None)
    assert found.states == {"completed": 10}
