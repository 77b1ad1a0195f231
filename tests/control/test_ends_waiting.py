"""Waiting for the end of executions: one look for all who wait, and nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from structlog.contextvars import bound_contextvars, get_contextvars

from noonday.control import ends as module
from noonday.control.ends import Ends
from noonday.domain.execution import Execution, ExecutionId, ExecutionState
from noonday.store import executions, jobs
from noonday.store.database import Database, StoreDown
from tests.api.until import eventually
from tests.factories import a_job, an_execution, an_id

T = TypeVar("T")


async def planned(db: Database, count: int = 1) -> list[Execution]:
    job = a_job()
    runs = [an_execution(job=job, scheduled_for=job.created_at.replace(second=n)) for n in range(count)]

    def work(conn: Connection) -> None:
        jobs.add(conn, job)
        executions.plan(conn, runs)

    await db.write(work)
    return runs


async def cancel(db: Database, run: Execution) -> None:
    await db.write(lambda conn: executions.request_cancel(conn, run.id, "ada", run.created_at))


async def test_it_hears_of_each_end_and_of_no_other(db: Database) -> None:
    ends = Ends(db)
    first, second = await planned(db, 2)
    waiting = [asyncio.create_task(ends.wait(run.id, 10)) for run in (first, first, second)]
    await eventually(lambda: len(ends._waiting) == 2)
    await cancel(db, first)
    heard = await asyncio.gather(*waiting[:2])
    assert [run and (run.id, run.state) for run in heard] == [(first.id, ExecutionState.CANCELLED)] * 2
    assert not waiting[2].done()
    await cancel(db, second)
    assert await waiting[2] is not None


async def test_it_reads_no_other_rows_than_those_that_somebody_waits_for(db: Database) -> None:
    first, second, third = await planned(db, 3)
    await cancel(db, first)
    await cancel(db, second)
    found = await db.read(lambda conn: executions.ended(conn, [first.id, third.id]))
    assert [run.id for run in found] == [first.id]


async def test_it_answers_at_once_for_what_is_over(db: Database) -> None:
    (run,) = await planned(db)
    await cancel(db, run)
    ended = await Ends(db).wait(run.id, 10)
    assert ended is not None


async def test_it_gives_up_in_time_and_leaves_nothing_behind(db: Database) -> None:
    ends = Ends(db)
    (run,) = await planned(db)
    assert await ends.wait(run.id, 0.05) is None
    assert await ends.wait(ExecutionId(an_id()), 0.05) is None
    gone = asyncio.create_task(ends.wait(run.id, 60))
    await eventually(lambda: ends._waiting)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert not ends._waiting
    await eventually(lambda: ends._looking is not None and ends._looking.done())


async def test_it_looks_once_for_all_of_them(sqlite_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = await planned(sqlite_db, 50)
    ends = Ends(sqlite_db)
    looks: list[int] = []
    ended = executions.ended

    def counted(conn: Connection, ids: list[ExecutionId]) -> list[Execution]:
        looks.append(len(ids))
        return ended(conn, ids)

    monkeypatch.setattr(executions, "ended", counted)
    waiting = [asyncio.create_task(ends.wait(run.id, 60)) for run in runs]
    await eventually(lambda: len(looks) > 2)
    ends.close()
    assert await asyncio.gather(*waiting) == [None] * 50
    assert set(looks) == {50}


async def test_it_outlives_a_database_that_was_away(
    sqlite_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = await planned(sqlite_db)
    await cancel(sqlite_db, run)
    troubles = [StoreDown("away"), RuntimeError("a row that cannot be read")]
    ended = executions.ended

    def troubled(conn: Connection, ids: list[ExecutionId]) -> list[Execution]:
        if troubles:
            raise troubles.pop()
        return ended(conn, ids)

    monkeypatch.setattr(executions, "ended", troubled)
    assert await Ends(sqlite_db).wait(run.id, 10) is not None


async def test_it_looks_in_nobodys_name(sqlite_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = await planned(sqlite_db)
    names: list[object] = []
    read = sqlite_db.read

    async def seen(work: Callable[[Connection], T]) -> T:
        names.append(get_contextvars().get("request_id"))
        return await read(work)

    monkeypatch.setattr(sqlite_db, "read", seen)
    with bound_contextvars(request_id="r-1"):
        assert await Ends(sqlite_db).wait(run.id, 0.05) is None
    assert set(names) == {None}


async def test_it_lets_only_so_many_wait(sqlite_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    ends = Ends(sqlite_db)
    first, second = await planned(sqlite_db, 2)
    waiting = asyncio.create_task(ends.wait(first.id, 60))
    await eventually(lambda: ends._waiting)
    async with asyncio.timeout(5):
        assert await ends.wait(second.id, 60) is None
    await cancel(sqlite_db, first)
    assert await waiting is not None


async def test_it_lets_everybody_go_when_it_closes(sqlite_db: Database) -> None:
    ends = Ends(sqlite_db)
    (run,) = await planned(sqlite_db)
    waiting = asyncio.create_task(ends.wait(run.id, 60))
    await eventually(lambda: ends._waiting)
    async with asyncio.timeout(5):
        ends.close()
        assert await waiting is None
        assert await ends.wait(run.id, 60) is None
