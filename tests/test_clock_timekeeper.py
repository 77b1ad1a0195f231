"""A machine whose wall clock is wrong, or is stepped, fires, holds leases and elects as all the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest
import structlog
from sqlalchemy import Connection, select

from noonday import Scheduler
from noonday import clock as clock_module
from noonday.clock import SyncedClock
from noonday.domain.errors import Unavailable
from noonday.domain.execution import Execution, ExecutionState
from noonday.engine import timekeeper as timekeeper_module
from noonday.engine.timekeeper import Timekeeper
from noonday.leadership.database import DatabaseLeadership
from noonday.store import dialects
from noonday.store.database import Database
from noonday.store.tables import executions, leadership
from tests.engine.electing import KEY, an_elector

CLOSE = timedelta(seconds=1)
true_wall = clock_module.wall_clock


class Wall:
    """The machine's clock, as wrong as one likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong = timedelta()
        monkeypatch.setattr(clock_module, "wall_clock", lambda: true_wall() + self.wrong)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


async def database_time(db: Database) -> datetime:
    return await db.read(lambda conn: dialects.of(conn).now(conn, true_wall()))


async def synced(db: Database) -> SyncedClock:
    clock = SyncedClock()
    await Timekeeper(db=db, clock=clock).run_once()
    return clock


@pytest.mark.parametrize("seconds", [-60, 60])
async def test_it_has_the_time_of_the_database(postgres_db: Database, wall: Wall, seconds: int) -> None:
    wall.wrong = timedelta(seconds=seconds)
    clock = await synced(postgres_db)
    assert abs(clock.now() - await database_time(postgres_db)) < CLOSE
    wall.wrong = timedelta(seconds=-seconds)
    assert abs(clock.now() - await database_time(postgres_db)) < CLOSE
    assert await Timekeeper(db=postgres_db, clock=clock).run_once() == timedelta(seconds=10)
    assert abs(clock.now() - await database_time(postgres_db)) < CLOSE


async def test_it_says_when_the_clock_was_far_off(postgres_db: Database) -> None:
    clock = SyncedClock()
    clock.adjust(true_wall() - timedelta(minutes=2), clock.monotonic())
    with structlog.testing.capture_logs() as lines:
        await Timekeeper(db=postgres_db, clock=clock).run_once()
        await Timekeeper(db=postgres_db, clock=clock).run_once()
    [line] = lines
    assert line["action"] == "clock"
    assert line["behind_seconds"] == pytest.approx(120, abs=1)


class Lagging(SyncedClock):
    """Counts the time that a slow network would have taken as well."""

    lag = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.lag


@pytest.mark.parametrize("slow", ["question", "answer"])
async def test_it_is_never_ahead_of_the_database(
    postgres_db: Database, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    clock, quick = Lagging(), dialects.Postgres.now

    def slowly(self: dialects.Postgres, conn: Connection, own: datetime) -> datetime:
        clock.lag += 0.1 if slow == "question" else 0
        now = quick(self, conn, own) + timedelta(seconds=clock.lag)
        clock.lag += 0.1 if slow == "answer" else 0
        return now

    monkeypatch.setattr(dialects.Postgres, "now", slowly)
    await Timekeeper(db=postgres_db, clock=clock).run_once()
    monkeypatch.undo()
    lag = timedelta(seconds=clock.lag)
    for _ in range(20):
        ours = clock.now()
        assert ours <= await database_time(postgres_db) + lag
    assert await database_time(postgres_db) + lag - clock.now() < CLOSE


async def test_it_throws_long_round_trips_away_once_it_knows_better(
    postgres_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper_module, "_TOO_LONG", -1.0)
    clock = await synced(postgres_db)
    assert clock.synced, "at the start something is better than nothing"
    clock.adjust(true_wall() + timedelta(hours=1), clock.monotonic())
    assert await Timekeeper(db=postgres_db, clock=clock).run_once() == timedelta(seconds=1)
    assert clock.now() > true_wall() + timedelta(minutes=59)


async def test_it_goes_on_while_the_database_is_away(postgres_db: Database) -> None:
    clock = await synced(postgres_db)
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    try:
        with pytest.raises(Unavailable):
            await Timekeeper(db=away, clock=clock).run_once()
    finally:
        await away.close()
    assert abs(clock.now() - await database_time(postgres_db)) < CLOSE


async def test_an_election_and_its_lease_do_not_notice_a_step(postgres_db: Database, wall: Wall) -> None:
    wall.wrong = timedelta(seconds=60)
    clock = await synced(postgres_db)
    ttl = timedelta(seconds=30)
    one, two = (
        an_elector(
            postgres_db,
            clock,
            DatabaseLeadership(postgres_db, clock, key=KEY, ttl=ttl, holder=name),
            name=name,
        )
        for name in ("one", "two")
    )
    await one.run_once()
    for step in (-60, 60, -3600):
        wall.wrong = timedelta(seconds=step)
        await two.run_once()
        assert (one.leading, two.leading) == (True, False)
    ends = await postgres_db.read(lambda conn: conn.execute(select(leadership.c.expires_at)).scalar_one())
    assert timedelta(seconds=20) < ends - await database_time(postgres_db) <= ttl


@pytest.mark.parametrize("seconds", [-60, 60])
async def test_due_times_and_leases_do_not_notice_a_step(
    postgres_url: str, postgres_db: Database, wall: Wall, seconds: int
) -> None:
    """The clock is wrong at the start, and is set right, and wrong again, while the job waits and runs."""
    wall.wrong = timedelta(seconds=seconds)
    running, finish = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        running.set()
        await finish.wait()

    async with asyncio.timeout(60), Scheduler(postgres_url) as scheduler:
        due_at = await database_time(postgres_db) + timedelta(seconds=2)
        await scheduler.add("once", work, at=due_at)
        wall.wrong = timedelta(seconds=-seconds)
        await running.wait()
        started_at = await database_time(postgres_db)
        ends = await postgres_db.read(_lease_end)
        finish.set()
        await _until(lambda: _ended(scheduler, "once"))
        [run] = await scheduler.history("once")
    assert timedelta(0) <= started_at - due_at < timedelta(seconds=5)
    assert run.started_at is not None
    assert due_at <= run.started_at <= started_at + CLOSE
    assert timedelta(seconds=20) < ends - started_at < timedelta(seconds=31)


def _lease_end(conn: Connection) -> datetime:
    found: datetime = conn.execute(select(executions.c.lease_expires_at)).scalar_one()
    return found


async def _ended(scheduler: Scheduler, name: str) -> bool:
    runs: list[Execution] = await scheduler.history(name)
    return [run.state for run in runs] == [ExecutionState.COMPLETED]


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():
        await asyncio.sleep(0.02)
