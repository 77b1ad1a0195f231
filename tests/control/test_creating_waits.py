"""How often the creation of a job waits for PostgreSQL, and what becomes of what nobody waited for."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from noonday.domain.errors import Conflict
from noonday.store import audit, jobs
from noonday.store.cursors import WiredConnection
from noonday.store.database import Database
from noonday.store.jobs import JobFilter
from noonday.store.wires import Wire
from tests.control.desk import Desk
from tests.factories import a_job


@pytest.mark.parametrize(("version", "count"), [(2, 3), (1, 4)])
async def test_it_waits_but_a_few_times(
    postgres_db: Database, monkeypatch: pytest.MonkeyPatch, version: int, count: int
) -> None:
    """Whether the name is free; for the job; for its audit, its event and the commit. For an older engine
    also whether that is at an end."""
    desk = Desk(postgres_db)
    await desk.new(scheduler_version=version)  # what each connection is told once
    waits: list[str] = []
    flush, wait = Wire._flush, WiredConnection.wait

    def sent(wire: Wire) -> None:
        waits.append("wire")
        flush(wire)

    def driven(connection: WiredConnection, *asked: object) -> object:
        waits.append("driver")
        return wait(connection, *asked)  # type: ignore[arg-type]

    with monkeypatch.context() as counted:
        counted.setattr(Wire, "_flush", sent)
        counted.setattr(WiredConnection, "wait", driven)
        job = await desk.new(scheduler_version=version)
    assert waits == ["wire"] * count
    assert await desk.jobs.get(job.id) == job


async def test_what_nobody_waited_for_fails_all_of_it(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(db)
    kept = await desk.new()
    (entry,) = db.read_now(lambda conn: audit.page(conn, kept.id)).items
    monkeypatch.setattr(audit, "new_ids", lambda at, count: [entry.id] * count)
    with pytest.raises(IntegrityError):
        await desk.new()
    monkeypatch.undo()
    assert [one.id for one in (await desk.jobs.find(JobFilter())).items] == [kept.id]
    assert (await desk.new()).name


@pytest.mark.parametrize("taken", ["name", "id"])
async def test_a_name_that_is_taken_meanwhile_is_refused_as_such(
    db: Database, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    desk = Desk(db)
    there = await desk.new()

    def free(conn: Connection, **asked: str) -> list[object]:
        return []  # as if somebody were faster

    monkeypatch.setattr(jobs, "_holder", free)

    def add(conn: Connection) -> None:
        jobs.add(conn, a_job(**{taken: getattr(there, taken)}))

    with pytest.raises(Conflict, match="is taken by another job"):
        db.write_now(add)
    assert [one.id for one in (await desk.jobs.find(JobFilter())).items] == [there.id]
