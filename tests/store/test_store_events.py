"""The table of events: numbers that never come again, a bounded past, and one change at a time."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Connection

from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.store import breakers, events, jobs
from noonday.store.audit import AuditEntry, record
from noonday.store.database import Database
from noonday.store.events import Event, News
from noonday.store.notices import EVENTS, told
from tests.factories import NOON, a_job, an_id


def some(count: int) -> list[News]:
    return [News(at=NOON, kind="execution.started", payload={"n": n}) for n in range(count)]


def read(db: Database, after: int = 0, limit: int = 1000, upto: int | None = None) -> list[Event]:
    return list(db.read_now(lambda conn: events.look(conn, lambda e: e, after, limit, upto)).events)


def add(db: Database, count: int) -> None:
    db.write_now(lambda conn: events.append(conn, some(count)))


def test_they_are_read_in_order_from_where_one_stopped(db: Database) -> None:
    add(db, 5)
    assert [event.seq for event in read(db)] == [1, 2, 3, 4, 5]
    assert [event.payload["n"] for event in read(db, after=2, limit=2)] == [2, 3]
    assert [event.seq for event in read(db, after=2, upto=4)] == [3, 4]
    look = db.read_now(lambda conn: events.look(conn, lambda e: e.seq, 4, 10, also={2}))
    assert look.events == (2, 5)


def test_an_event_knows_its_job(db: Database) -> None:
    job = a_job(name="nightly")
    gone = an_id()
    db.write_now(lambda conn: jobs.add(conn, job))
    news = [News(at=NOON, kind="job.paused", job_id=one) for one in (job.id, gone, None)]
    db.write_now(lambda conn: events.append(conn, news))
    assert [(event.job_id, event.job_name) for event in read(db)] == [
        (job.id, "nightly"),
        (gone, None),
        (None, None),
    ]


def test_it_tells_those_who_listen(db: Database) -> None:
    def work(conn: Connection) -> tuple[frozenset[str], frozenset[str]]:
        events.append(conn, [])
        nothing = told(conn)
        events.append(conn, some(1))
        return nothing, told(conn)

    assert db.write_now(work) == (frozenset(), frozenset({EVENTS}))


def test_the_oldest_are_pruned_in_steps_and_numbers_go_on(db: Database) -> None:
    assert db.read_now(events.bounds) == (1, 0)
    add(db, 30)
    assert db.write_now(lambda conn: events.prune(conn, keep=10, limit=15)) == 15
    assert db.read_now(events.bounds) == (16, 30)
    assert db.write_now(lambda conn: events.prune(conn, keep=10, limit=15)) == 5
    assert db.write_now(lambda conn: events.prune(conn, keep=10)) == 0
    assert [event.seq for event in read(db)] == list(range(21, 31))
    assert db.write_now(lambda conn: events.prune(conn, keep=0)) == 10
    assert db.read_now(events.bounds) == (31, 30)
    add(db, 1)
    assert [event.seq for event in read(db)] == [31]


def test_several_may_prune_at_once(postgres_db: Database) -> None:
    add(postgres_db, 3_000)
    gone: list[int] = []

    def prune() -> None:
        while found := postgres_db.write_now(lambda conn: events.prune(conn, keep=100, limit=50)):
            gone.append(found)

    threads = [threading.Thread(target=prune) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(gone) == 2_900
    assert postgres_db.read_now(events.bounds) == (2_901, 3_000)


def test_a_number_that_was_rolled_back_is_not_a_pruned_one(postgres_db: Database) -> None:
    def fail(conn: Connection) -> None:
        events.append(conn, some(3))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        postgres_db.write_now(fail)
    add(postgres_db, 1)
    assert postgres_db.read_now(events.bounds) == (1, 4)


@pytest.mark.parametrize(
    ("entry", "kind", "payload"),
    [
        (
            AuditEntry(NOON, "ada", "pause", "job", an_id(), {"paused": False}, {"paused": True}, 4),
            "job.paused",
            {"action": "pause", "by": "ada", "revision": 4, "changed": ["paused"]},
        ),
        (
            AuditEntry(
                NOON,
                "ada",
                "delete",
                "job",
                an_id(),
                {"name": "x", "target": {"service": "email", "headers": {"token": "geheim"}}},
            ),
            "job.deleted",
            {"action": "delete", "by": "ada", "job_name": "x", "service": "email"},
        ),
        (
            AuditEntry(NOON, "ada", "cancel", "execution", an_id(), {}, {"state": "running"}),
            "execution.cancelling",
            {"by": "ada", "status": "running"},
        ),
        (
            AuditEntry(NOON, "ada", "cancel", "execution", an_id(), {}, {"state": "cancelled"}),
            "execution.ended",
            {"by": "ada", "status": "cancelled"},
        ),
        (
            AuditEntry(NOON, "ada", "reset", "breaker", "b.test", {"state": "open"}, {"state": "closed"}),
            "breaker.reset",
            {"action": "reset", "by": "ada", "changed": ["state"], "breaker": "b.test"},
        ),
        (
            AuditEntry(NOON, "scheduler", "set aside", "job", an_id()),
            "job.set_aside",
            {"action": "set aside", "by": "scheduler"},
        ),
    ],
)
def test_an_audited_change_is_an_event_without_values(
    sqlite_db: Database, entry: AuditEntry, kind: str, payload: object
) -> None:
    sqlite_db.write_now(lambda conn: record(conn, entry))
    (event,) = read(sqlite_db)
    assert (event.kind, event.payload) == (kind, payload)


@pytest.mark.parametrize("kind", ["key", "instance", "whatever"])
def test_what_the_audit_alone_knows_is_no_event(sqlite_db: Database, kind: str) -> None:
    sqlite_db.write_now(lambda conn: record(conn, AuditEntry(NOON, "ada", "create", kind, "x")))
    assert read(sqlite_db) == []


def test_a_breaker_that_opens_is_told_of_once(db: Database) -> None:
    policy = BreakerPolicy(threshold=2)
    for _ in range(3):
        heard = {"b.test": Heard(failures=1, error="refused")}
        db.write_now(lambda conn, heard=heard: breakers.hear(conn, heard, policy, NOON))  # type: ignore[misc]
    (event,) = read(db)
    assert event.kind == "breaker.opened"
    assert event.payload == {"breaker": "b.test", "failures": 2, "last_error": "refused"}
