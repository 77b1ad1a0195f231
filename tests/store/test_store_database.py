from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection

from noonday.domain.errors import Conflict, Invalid, Unavailable
from noonday.store import database, executions, jobs, meta, migrate
from noonday.store.database import CommitUnknown, Database
from noonday.store.engines import StoreOptions, normalise_url
from noonday.store.notices import CANCEL, JOBS, WORK, tell
from tests.factories import NOON, a_job
from tests.store.store_steps import add, claim, plan_run, sql


async def test_it_writes_and_reads_from_the_loop(db: Database) -> None:
    job = a_job()
    await db.write(lambda conn: jobs.add(conn, job))
    assert await db.read(lambda conn: jobs.get(conn, job.id)) == job


def test_a_failing_write_leaves_nothing_behind(db: Database) -> None:
    def half(conn: Connection) -> None:
        meta.put(conn, "k", "1")
        raise Conflict("changed my mind")

    with pytest.raises(Conflict):
        db.write_now(half)
    assert db.read_now(lambda conn: meta.get(conn, "k")) is None


async def test_a_cancelled_awaiter_does_not_break_the_transaction(db: Database) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(conn: Connection) -> None:
        meta.put(conn, "k", "1")
        begun.set()
        go.wait(10)

    task = asyncio.create_task(db.write(slow))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await db.write(lambda conn: None)
    await db.close()
    again = Database(db.url.render_as_string(hide_password=False))
    assert await again.read(lambda conn: meta.get(conn, "k")) == "1"
    await again.close()


async def test_those_who_write_serially_do_not_meet(
    postgres_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_LONGEST_WAIT", 30)
    inside, most = 0, 0

    def work(conn: Connection) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        conn.exec_driver_sql("SELECT pg_sleep(0.01)")
        inside -= 1

    await asyncio.gather(*(postgres_db.write(work, serially=True) for _ in range(4)))
    assert most == 1


async def test_all_others_write_beside_each_other(postgres_db: Database) -> None:
    both = threading.Barrier(2)
    async with asyncio.timeout(20):
        await asyncio.gather(
            postgres_db.write(lambda conn: both.wait(10), serially=True),
            postgres_db.write(lambda conn: both.wait(10)),
        )


async def test_nobody_waits_long_for_the_one_before(postgres_db: Database) -> None:
    begun, go = threading.Event(), threading.Event()

    def stuck(conn: Connection) -> None:
        begun.set()
        assert go.wait(30)

    held = asyncio.create_task(postgres_db.write(stuck, serially=True))
    await asyncio.to_thread(begun.wait, 10)
    async with asyncio.timeout(20):
        assert await postgres_db.write(lambda conn: "done", serially=True) == "done"
    go.set()
    await held


async def test_reading_does_not_wait_for_a_writer(sqlite_db: Database) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(conn: Connection) -> None:
        meta.put(conn, "k", "1")
        begun.set()
        assert go.wait(10)

    writing = asyncio.create_task(sqlite_db.write(slow))
    await asyncio.to_thread(begun.wait, 10)
    assert await sqlite_db.read(lambda conn: meta.get(conn, "k")) is None
    go.set()
    await writing
    assert await sqlite_db.read(lambda conn: meta.get(conn, "k")) == "1"


def test_a_reader_cannot_write_by_accident(db: Database) -> None:
    with pytest.raises(Unavailable):
        db.read_now(lambda conn: meta.put(conn, "k", "1"))


async def test_who_subscribed_is_woken_after_the_commit(db: Database) -> None:
    work, cancel = db.subscribe(WORK), db.subscribe(CANCEL)
    seen_before_commit: list[bool] = []

    def act(conn: Connection) -> None:
        tell(conn, WORK)
        seen_before_commit.append(work.is_set())

    await db.write(act)
    async with asyncio.timeout(5):
        await work.wait()
    assert seen_before_commit == [False]
    assert not cancel.is_set()


async def test_what_rolls_back_wakes_nobody(db: Database) -> None:
    work = db.subscribe(WORK)

    def act(conn: Connection) -> None:
        tell(conn, WORK)
        raise Conflict

    with pytest.raises(Conflict):
        await db.write(act)
    await db.write(lambda conn: None)
    await asyncio.sleep(0)
    assert not work.is_set()


async def test_each_verb_wakes_those_it_concerns(db: Database) -> None:
    job = a_job()
    heard = {topic: db.subscribe(topic) for topic in (JOBS, WORK, CANCEL)}

    async def told() -> set[str]:
        await asyncio.sleep(0)
        found = {topic for topic, event in heard.items() if event.is_set()}
        for event in heard.values():
            event.clear()
        return found

    await asyncio.to_thread(add, db, job)
    assert await told() == {JOBS}
    await asyncio.to_thread(plan_run, db, job)
    assert await told() == {WORK}
    (claimed,) = await asyncio.to_thread(claim, db)
    assert await told() == set()
    await db.write(lambda conn: executions.request_cancel(conn, claimed.execution.id, "ada", NOON))
    assert await told() == {CANCEL}
    await db.write(lambda conn: jobs.remove(conn, job.id))
    assert await told() == {JOBS, CANCEL}


async def test_another_process_is_heard(db: Database, db_url: str) -> None:
    """Another Database object is as far away as another process: it has its own connections."""
    other = Database(db_url)
    heard = db.subscribe(JOBS)
    listening = asyncio.create_task(db.listen())
    try:
        if db.dialect == "postgresql":  # wakes everybody once it listens
            async with asyncio.timeout(10):
                await heard.wait()
            heard.clear()
        else:
            await db.write(lambda conn: None)
            await asyncio.sleep(0.05)  # the first look at the file's version
        await other.write(lambda conn: jobs.add(conn, a_job()))
        async with asyncio.timeout(10):
            await heard.wait()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await other.close()


async def test_plain_sql_is_heard(postgres_db: Database, postgres_url: str) -> None:
    job = a_job()
    await postgres_db.write(lambda conn: jobs.add(conn, job))
    heard = postgres_db.subscribe(JOBS)
    listening = asyncio.create_task(postgres_db.listen())
    try:
        async with asyncio.timeout(10):
            await heard.wait()
        heard.clear()
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as conn:
            await conn.execute("UPDATE jobs SET interval_minutes = 5, schedule_type = 'interval'")
        async with asyncio.timeout(10):
            await heard.wait()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_the_ear_comes_back_after_its_connection_was_cut(postgres_db: Database) -> None:
    heard = postgres_db.subscribe(WORK)
    listening = asyncio.create_task(postgres_db.listen())
    try:
        for _ in range(2):
            async with asyncio.timeout(10):
                await heard.wait()
            heard.clear()
            await asyncio.to_thread(
                sql,
                postgres_db,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'noonday-ear' AND datname = current_database()",
            )
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def test_a_connection_that_was_cut_is_replaced(postgres_db: Database) -> None:
    cut: list[int] = []

    def work(conn: Connection) -> str:
        meta.put(conn, "k", "1")
        if not cut:
            cut.append(conn.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
            with psycopg.connect(conn.engine.url.set(drivername="postgresql").render_as_string()) as other:
                other.execute("SELECT pg_terminate_backend(%s)", (cut[0],))
        return str(meta.get(conn, "k"))

    assert postgres_db.write_now(work) == "1"
    assert cut


def test_a_deadlock_is_tried_again(postgres_db: Database) -> None:
    one, two = a_job(), a_job()
    add(postgres_db, one, two)
    both = threading.Barrier(2)
    rounds: list[str] = []

    def locking(first: str, second: str) -> None:
        def work(conn: Connection) -> None:
            rounds.append(first)
            jobs.lock(conn, first)
            if len(rounds) <= 2:
                both.wait(10)
            jobs.lock(conn, second)

        postgres_db.write_now(work)

    threads = [threading.Thread(target=locking, args=ids) for ids in ((one.id, two.id), (two.id, one.id))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(rounds) == 3


def test_an_answer_lost_while_committing_is_said_and_not_tried_again(postgres_db: Database) -> None:
    tries = []

    def work(conn: Connection) -> None:
        tries.append(1)
        conn.exec_driver_sql("CREATE TEMP TABLE gone (x int) ON COMMIT DROP")
        # ends the session in the middle of the commit
        conn.exec_driver_sql(
            "CREATE FUNCTION pg_temp.cut() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        conn.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON gone DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION pg_temp.cut()"
        )
        conn.exec_driver_sql("INSERT INTO gone VALUES (1)")

    with pytest.raises(CommitUnknown):
        postgres_db.write_now(work)
    assert len(tries) == 1


def test_a_database_that_is_not_there_is_unavailable() -> None:
    db = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Unavailable, match="not available"):
        db.write_now(lambda conn: None)
    db.close_now()


def test_a_read_only_file_is_unavailable(sqlite_db: Database) -> None:
    sql(sqlite_db, "PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="readonly"):
        add(sqlite_db, a_job())


def test_a_full_disk_is_unavailable_and_leaves_the_file_whole(sqlite_db: Database) -> None:
    pages = sql(sqlite_db, "PRAGMA page_count")[0]["page_count"]
    sql(sqlite_db, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unavailable, match="full"):
        add(sqlite_db, *(a_job(description="x" * 5000) for _ in range(50)))
    sql(sqlite_db, "PRAGMA max_page_count = 1000000")
    add(sqlite_db, a_job())
    assert sql(sqlite_db, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


def test_what_the_database_refuses_as_a_value_is_invalid(postgres_db: Database) -> None:
    with pytest.raises(Invalid, match="refuses"):
        add(postgres_db, a_job(name="nul\x00"))


def test_it_waits_for_another_writer_of_the_same_file(sqlite_db: Database, sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    timer.start()
    add(sqlite_db, a_job())
    timer.join()
    other.close()


def test_sqlite_is_set_up_to_lose_nothing(sqlite_db: Database, sqlite_url: str) -> None:
    def setting(db: Database, name: str) -> object:
        return db.write_now(lambda conn: conn.exec_driver_sql(f"PRAGMA {name}").scalar())

    assert setting(sqlite_db, "journal_mode") == "wal"
    assert setting(sqlite_db, "synchronous") == 2
    assert setting(sqlite_db, "foreign_keys") == 1
    assert int(str(setting(sqlite_db, "busy_timeout"))) >= 5000
    fast = Database(sqlite_url, StoreOptions(synchronous="NORMAL"))
    assert setting(fast, "synchronous") == 1
    fast.close_now()


def test_the_folder_of_the_file_is_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/some/where/noonday.db"
    migrate.upgrade(url)
    db = Database(url)
    add(db, a_job())
    db.close_now()
    assert (tmp_path / "some/where/noonday.db").exists()


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("sqlite:///a.db", "sqlite"),
        ("postgres://u:p@h/d", "postgresql+psycopg"),
        ("postgresql://u:p@h/d", "postgresql+psycopg"),
        ("postgresql+psycopg://u:p@h/d?sslmode=require", "postgresql+psycopg"),
    ],
)
def test_urls_as_people_write_them(given: str, driver: str) -> None:
    assert normalise_url(given).drivername == driver


@pytest.mark.parametrize("given", ["mysql://u:secret@h/d", "nonsense", ""])
def test_a_wrong_url_is_refused_without_its_password(given: str) -> None:
    with pytest.raises(Invalid) as refused:
        normalise_url(given)
    assert "DATABASE_URL" in str(refused.value)
    assert "secret" not in str(refused.value)
