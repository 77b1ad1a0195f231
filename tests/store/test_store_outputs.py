"""Output in the store: read on from any place, its middle dropped, gone with its execution."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.output import HEAD, LONGEST, TAIL
from noonday.store import executions, history, jobs, outputs
from noonday.store.database import Database
from tests.factories import NOON, a_job, an_execution


async def a_run(db: Database) -> Execution:
    job = a_job()
    ended = {"state": ExecutionState.COMPLETED, "available_at": None, "completed_at": NOON}
    run = an_execution(job=job, **ended)

    def make(conn: Connection) -> None:
        jobs.add(conn, job)
        executions.plan(conn, [run])

    await db.write(make)
    return run


async def text_of(db: Database, run: Execution, attempt: int = 1, after: int = 0) -> str:
    found = await db.read(lambda conn: outputs.read(conn, run.id, attempt, after, 1 << 30))
    return "".join(one.piece.text for one in found)


async def test_it_is_read_on_from_any_place(db: Database) -> None:
    run = await a_run(db)
    for text in ("one\n", "two\nthree", " and a half\n"):
        await db.write(partial(outputs.add, execution_id=run.id, attempt=1, text=text, now=NOON))
    whole = "one\ntwo\nthree and a half\n"
    for after in range(len(whole) + 1):
        assert await text_of(db, run, after=after) == whole[after:]
    (first, *_) = await db.read(lambda conn: outputs.read(conn, run.id, 1, 6, 1 << 30))
    assert (first.piece.place, first.piece.line, first.at) == (6, 1, NOON)


async def test_attempts_are_apart(db: Database) -> None:
    run = await a_run(db)
    await db.write(lambda conn: outputs.add(conn, run.id, 1, "first", NOON))
    await db.write(lambda conn: outputs.add(conn, run.id, 3, "third \N{SNOWMAN}", NOON))
    assert await db.read(lambda conn: outputs.attempts(conn, run.id)) == [1, 3]
    assert await text_of(db, run, 3) == "third \N{SNOWMAN}"
    assert await text_of(db, run, 2) == ""


async def test_an_answer_is_bounded(db: Database) -> None:
    run = await a_run(db)
    await db.write(lambda conn: outputs.add(conn, run.id, 1, "x" * (3 * LONGEST), NOON))
    found = await db.read(lambda conn: outputs.read(conn, run.id, 1, 0, 100))
    assert len(found) == 1


async def test_the_middle_goes_and_the_ends_stay(db: Database) -> None:
    run = await a_run(db)
    line = "0123456789abcde\n"
    batch = line * (LONGEST // len(line))
    for _ in range((HEAD + 2 * TAIL) // LONGEST):
        await db.write(lambda conn: outputs.add(conn, run.id, 1, batch, NOON))
    found = [one.piece for one in await db.read(lambda conn: outputs.read(conn, run.id, 1, 0, 1 << 30))]
    kept = sum(len(piece.text) for piece in found)
    assert HEAD + TAIL <= kept <= HEAD + TAIL + 3 * LONGEST
    assert found[0].place == 0
    assert found[-1].end == HEAD + 2 * TAIL
    assert all(piece.line == piece.place // len(line) for piece in found)


async def test_the_same_piece_twice_is_one(db: Database) -> None:
    run = await a_run(db)
    found = await db.read(lambda conn: outputs.read(conn, run.id, 1, 0, 9))
    assert found == []
    await db.write(lambda conn: outputs.add(conn, run.id, 1, "once", NOON))
    pieces = [one.piece for one in await db.read(lambda conn: outputs.read(conn, run.id, 1, 0, 9))]
    await db.write(lambda conn: outputs.append(conn, {(run.id, 1): pieces}, NOON))
    assert await text_of(db, run) == "once"


async def test_what_belongs_to_nothing_is_dropped(db: Database) -> None:
    nobody = an_execution()
    await db.write(lambda conn: outputs.add(conn, nobody.id, 1, "lost", NOON))
    assert await text_of(db, nobody) == ""


async def test_it_goes_with_its_execution(db: Database) -> None:
    run = await a_run(db)
    await db.write(lambda conn: outputs.add(conn, run.id, 1, "old", NOON))
    later = NOON + timedelta(days=90)
    await db.write(lambda conn: jobs.remove(conn, run.job_id))
    assert await db.write(lambda conn: history.prune(conn, later)) == 1
    assert await text_of(db, run) == ""
