"""PostgreSQL behind a real PgBouncer in transaction mode, with two connections for everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from noonday.domain.execution import ExecutionState
from noonday.domain.outcome import Completed
from noonday.store import executions, history, jobs, migrate
from noonday.store.database import Database
from noonday.store.engines import StoreOptions
from noonday.store.executions import ClaimOrder, Ending
from noonday.store.notices import JOBS, WORK, tell
from noonday.targets.tasks import current
from tests.engine.outages import EVERY_SECOND, living, true
from tests.factories import LEASE, NOON, a_job, an_execution

POOLED = StoreOptions(transaction_pooling=True, connections=20)


@pytest.fixture
def pooled(pooled_url: str) -> Iterator[Database]:
    made = Database(pooled_url, POOLED)
    yield made
    made.close_now()


def ask(db: Database, query: str) -> object:
    return db.read_now(lambda conn: conn.execute(text(query)).scalar())


async def together(db: Database, number: int, work: Callable[[Connection], object]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(number):
            group.create_task(db.write(work))


def test_it_migrates_through_the_pooler(empty_postgres_url: str, pooler: Callable[[str], str]) -> None:
    url = pooler(empty_postgres_url)
    migrate.upgrade(url)
    assert migrate.pending(url) == []
    migrate.downgrade(url)
    assert migrate.current(url) is None


async def test_several_migrate_at_once_through_the_pooler(
    empty_postgres_url: str, pooler: Callable[[str], str]
) -> None:
    url = pooler(empty_postgres_url)
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(asyncio.to_thread(migrate.upgrade, url))
    assert migrate.pending(url) == []


def test_a_migration_that_fails_leaves_nothing_behind(empty_postgres_url: str) -> None:
    """All steps are one transaction: the second fails, and the first is not there either."""
    with psycopg.connect(empty_postgres_url) as conn:
        conn.execute("CREATE TABLE leadership (n int)")  # what the second step is about to make
    with pytest.raises(DBAPIError):
        migrate.upgrade(empty_postgres_url)
    assert migrate.current(empty_postgres_url) is None
    with psycopg.connect(empty_postgres_url) as conn:
        conn.execute("DROP TABLE leadership")
    migrate.upgrade(empty_postgres_url)
    assert migrate.pending(empty_postgres_url) == []


def test_each_transaction_has_its_settings_and_leaves_none_behind(pooled: Database, pooled_url: str) -> None:
    assert ask(pooled, "SHOW timezone") == "UTC"
    assert ask(pooled, "SHOW lock_timeout") == "10s"
    assert ask(pooled, "SHOW idle_in_transaction_session_timeout") == "1min"
    assert ask(pooled, "SHOW jit") == "off"
    assert ask(pooled, "SHOW transaction_read_only") == "on"
    assert pooled.write_now(lambda conn: conn.execute(text("SHOW transaction_read_only")).scalar()) == "off"
    with psycopg.connect(pooled_url, prepare_threshold=None) as other:  # gets one of the same sessions
        assert other.execute("SHOW timezone").fetchone() == ("Pacific/Chatham",)
        assert other.execute("SHOW lock_timeout").fetchone() == ("0",)


def test_a_look_cannot_write(pooled: Database) -> None:
    with pytest.raises(Exception, match="read-only"):
        pooled.read_now(lambda conn: jobs.add(conn, a_job()))


def test_instants_come_back_in_utc(pooled: Database) -> None:
    pooled.write_now(lambda conn: jobs.add(conn, a_job(next_run_at=NOON)))
    ((found, _),) = pooled.write_now(lambda conn: jobs.due(conn, NOON, 10))
    assert found.next_run_at == NOON
    assert found.next_run_at is not None
    assert found.next_run_at.tzinfo is UTC
    far = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)  # in the server's own zone that is the year 10000
    query = text("SELECT CAST(:far AS timestamptz)").bindparams(far=far)
    assert pooled.read_now(lambda conn: conn.execute(query).scalar()) == far


def test_a_failed_transaction_changes_nothing_and_the_next_one_works(pooled: Database) -> None:
    def fail(conn: Connection) -> None:
        jobs.add(conn, a_job())
        raise RuntimeError("on purpose")

    for _ in range(5):
        with pytest.raises(RuntimeError, match="on purpose"):
            pooled.write_now(fail)
    assert ask(pooled, "SELECT count(*) FROM jobs") == 0
    pooled.write_now(lambda conn: jobs.add(conn, a_job()))
    assert ask(pooled, "SELECT count(*) FROM jobs") == 1


async def test_twenty_at_a_time_share_two_sessions(pooled: Database, postgres_url: str) -> None:
    """Each says the same statements often enough for the driver to prepare them, had it been left to."""

    def work(conn: Connection) -> None:
        job = a_job(next_run_at=NOON)
        jobs.add(conn, job)
        execution = an_execution(job=job)
        executions.plan(conn, [execution])
        jobs.due(conn, NOON, 5)
        history.page(conn, job.id)

    for _ in range(10):
        await together(pooled, 20, work)
    assert ask(pooled, "SELECT count(*) FROM executions") == 200
    assert ask(pooled, "SELECT count(*) FROM pg_prepared_statements") == 0
    with psycopg.connect(postgres_url) as direct:
        ours = "datname = current_database() AND backend_type = 'client backend'"
        count = f"SELECT count(*) FROM pg_stat_activity WHERE {ours} AND pid <> pg_backend_pid()"
        assert direct.execute(count).fetchone() == (2,)


def test_the_life_of_an_execution(pooled: Database) -> None:
    job = a_job()
    execution = an_execution(job=job)

    def make(conn: Connection) -> None:
        jobs.add(conn, job)
        executions.plan(conn, [execution])

    pooled.write_now(make)
    order = ClaimOrder(instance_id="i", limit=5, now=NOON, lease=LEASE)
    (claim,) = pooled.write_now(lambda conn: executions.claim(conn, order))
    token = claim.execution.lease_token or ""
    held = {execution.id: token}
    until = NOON + timedelta(minutes=5)
    assert pooled.write_now(lambda conn: executions.renew(conn, held, until)) == {execution.id: False}
    ending = Ending(execution_id=execution.id, token=token, outcome=Completed())
    (settled,) = pooled.write_now(lambda conn: executions.settle(conn, [ending], NOON))
    assert settled.execution.state is ExecutionState.COMPLETED
    assert len(pooled.read_now(lambda conn: history.attempts(conn, execution.id))) == 1


async def test_what_others_commit_is_noticed_at_the_next_beat(pooled: Database, pooled_url: str) -> None:
    woken = pooled.subscribe(JOBS, WORK)
    ears = asyncio.create_task(pooled.listen())
    other = Database(pooled_url, POOLED)
    try:
        woken.clear()
        await other.write(lambda conn: tell(conn, WORK))
        async with asyncio.timeout(5):
            await woken.wait()
    finally:
        ears.cancel()
        await asyncio.gather(ears, return_exceptions=True)
        await other.close()


async def test_who_listens_directly_hears_what_is_told_through_the_pooler(
    pooled: Database, postgres_url: str
) -> None:
    direct = Database(postgres_url)
    woken = direct.subscribe(WORK)
    ears = asyncio.create_task(direct.listen())
    try:
        async with asyncio.timeout(10):
            await woken.wait()  # it listens now
            woken.clear()
            await pooled.write(lambda conn: tell(conn, WORK))
            await woken.wait()
    finally:
        ears.cancel()
        await asyncio.gather(ears, return_exceptions=True)
        await direct.close()


async def test_two_engines_share_the_work_through_the_pooler(pooled_url: str) -> None:
    ran: Counter[tuple[str, int]] = Counter()
    ticked: list[str] = []

    async def work() -> None:
        ran[current().execution_id, current().attempt] += 1

    async def tick() -> None:
        ticked.append(current().execution_id)

    one, two = (living(pooled_url, work, tick, name=name, pooled=True) for name in ("one", "two"))
    async with one as first, two as second:
        await first.add("ticks", "tick", EVERY_SECOND)
        made = [await (first, second)[n % 2].add(f"job-{n}", "work") for n in range(20)]
        runs = [await first.ended(job) for job in made]
        await true(lambda: len(ticked) >= 3)
        leading = [life.parts.engine.elector.leading for life in (first, second)]
    assert {run.state for run in runs} == {ExecutionState.COMPLETED}
    assert {run.attempt for run in runs} == {1}
    assert len(ran) == 20
    assert set(ran.values()) == {1}
    assert len(set(ticked)) == len(ticked)
    assert sorted(leading) == [False, True]
