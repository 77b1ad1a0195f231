"""The lease on an Idempotency-Key: kept by whoever still answers, however long that takes."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from noonday.control.errors import KeyReused, StillAnswering
from noonday.control.replays import Answer, Answers, Claim
from noonday.store import replays
from noonday.store.database import Database
from noonday.store.front_tables import replays as table
from noonday.testing import ManualClock
from tests.api.until import eventually
from tests.factories import NOON

DONE = Answer(status=200, headers=[], body="{}")


async def begun(answers: Answers) -> Claim:
    claim = await answers.begin("key", "print")
    assert isinstance(claim, Claim)
    return claim


async def test_it_is_renewed_while_the_answer_takes_its_time(db: Database) -> None:
    clock, lease = ManualClock(NOON), timedelta(seconds=0.06)
    answers = Answers(db, clock, lease=lease)
    claim = await begun(answers)

    async def renewed() -> bool:
        row = await db.read(lambda conn: conn.execute(table.select()).one())
        return bool(row.expires_at == clock.now() + lease)

    async with answers.held(claim):
        for _ in range(5):
            clock.advance(seconds=lease.total_seconds() / 2)
            await eventually(renewed)
        with pytest.raises(StillAnswering):
            await answers.begin("key", "print")
    await answers.finish(claim, DONE)
    assert await answers.begin("key", "print") == DONE
    with pytest.raises(KeyReused):
        await answers.begin("key", "another print")


async def test_it_is_renewed_by_nobody_afterwards(sqlite_db: Database) -> None:
    answers = Answers(sqlite_db, ManualClock(NOON), lease=timedelta(seconds=60))
    claim = await begun(answers)
    async with answers.held(claim):
        await eventually(lambda: "replay lease" in {task.get_name() for task in asyncio.all_tasks()})
    await eventually(lambda: "replay lease" not in {task.get_name() for task in asyncio.all_tasks()})
    await answers.free(claim)
    assert await sqlite_db.read(lambda conn: conn.execute(table.select()).all()) == []
    assert isinstance(await answers.begin("key", "print"), Claim)


async def test_it_takes_no_answer_of_whoever_was_silent_for_too_long(db: Database) -> None:
    clock = ManualClock(NOON)
    answers = Answers(db, clock)
    late = await begun(answers)
    clock.advance(seconds=61)
    second = await begun(answers)
    await answers.finish(late, Answer(status=500, headers=[], body="late"))
    await answers.free(late)
    await answers.finish(second, DONE)
    assert await answers.begin("key", "print") == DONE


async def test_it_keeps_answers_for_as_long_as_it_is_told(db: Database) -> None:
    clock = ManualClock(NOON)
    answers = Answers(db, clock, keep=timedelta(minutes=10))
    await answers.finish(await begun(answers), DONE)
    clock.advance(minutes=9, seconds=59)
    assert await answers.begin("key", "print") == DONE
    assert await db.write(lambda conn: replays.prune(conn, clock.now())) == 0
    clock.advance(seconds=1)
    assert await db.write(lambda conn: replays.prune(conn, clock.now())) == 1
