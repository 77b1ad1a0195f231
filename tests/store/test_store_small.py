from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from noonday.store import audit, claiming, instances, meta, outbox, prepared, settling
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.instances import Instance
from noonday.store.trying import Reach, StoreDown
from tests.factories import NOON, a_job, an_id
from tests.store.store_steps import MINUTE, SECOND, add, plan_run


def test_the_audit_trail_is_kept_newest_first(db: Database) -> None:
    subject = an_id()
    entries = [
        AuditEntry(NOON, "ada", "create", "job", subject, None, {"name": "a"}),
        AuditEntry(NOON + SECOND, "bob", "pause", "job", subject, {"paused": False}, {"paused": True}),
        AuditEntry(NOON + SECOND, "bob", "pause", "job", an_id()),
    ]
    for entry in entries:
        db.write_now(lambda conn, entry=entry: audit.record(conn, entry))  # type: ignore[misc]
    page = db.read_now(lambda conn: audit.page(conn, subject))
    assert page.items == (entries[1], entries[0])
    assert page.total == 2
    assert db.read_now(audit.page).total == 3


def instance(**changes: object) -> Instance:
    made = Instance(
        id="host-1", host="host", pid=7, roles=("api", "worker"), started_at=NOON, heartbeat_at=NOON, slots=10
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_an_instance_tells_of_itself_again_and_again(db: Database) -> None:
    db.write_now(lambda conn: instances.beat(conn, instance()))
    later = instance(heartbeat_at=NOON + SECOND, busy=3, state="draining")
    db.write_now(lambda conn: instances.beat(conn, later))
    db.write_now(lambda conn: instances.beat(conn, instance(id="host-2")))
    assert db.read_now(instances.list) == (later, instance(id="host-2"))
    assert db.read_now(lambda conn: instances.list(conn, NOON + SECOND)) == (later,)
    assert db.write_now(lambda conn: instances.forget(conn, NOON + SECOND)) == 1
    db.write_now(lambda conn: instances.remove(conn, "host-1"))
    assert db.read_now(instances.list) == ()


def test_a_secret_is_made_once(db: Database) -> None:
    first = db.write_now(lambda conn: meta.secret(conn, "signing_secret"))
    assert len(first) == 32
    assert db.write_now(meta.secret) == first
    assert db.write_now(lambda conn: meta.secret(conn, "other")) != first


def test_small_facts_can_be_changed(db: Database) -> None:
    db.write_now(lambda conn: meta.put(conn, "k", "1"))
    db.write_now(lambda conn: meta.put(conn, "k", "2"))
    assert db.read_now(lambda conn: meta.get(conn, "k")) == "2"
    assert db.read_now(lambda conn: meta.get(conn, "nothing")) is None


def test_a_letter_is_taken_by_one_and_comes_back_if_it_is_not_done(db: Database) -> None:
    letter_id = db.write_now(lambda conn: outbox.add(conn, "execution.failed", {"n": 1}, NOON))
    (letter,) = db.write_now(lambda conn: outbox.take(conn, NOON, 10, MINUTE))
    assert (letter.id, letter.kind, letter.payload, letter.attempts) == (
        letter_id,
        "execution.failed",
        {"n": 1},
        1,
    )
    assert db.write_now(lambda conn: outbox.take(conn, NOON, 10, MINUTE)) == []
    (again,) = db.write_now(lambda conn: outbox.take(conn, NOON + MINUTE, 10, MINUTE))
    assert again.attempts == 2
    db.write_now(lambda conn: outbox.later(conn, letter_id, NOON + 5 * MINUTE, "no answer"))
    assert db.write_now(lambda conn: outbox.take(conn, NOON + 4 * MINUTE, 10, MINUTE)) == []
    assert len(db.write_now(lambda conn: outbox.take(conn, NOON + 5 * MINUTE, 10, MINUTE))) == 1


def test_a_delivered_letter_is_done_and_forgotten_later(db: Database) -> None:
    letter_id = db.write_now(lambda conn: outbox.add(conn, "execution.failed", {}, NOON))
    db.write_now(lambda conn: outbox.done(conn, [letter_id], NOON))
    assert db.write_now(lambda conn: outbox.take(conn, NOON + MINUTE, 10, MINUTE)) == []
    assert db.write_now(lambda conn: outbox.prune(conn, NOON)) == 0
    assert db.write_now(lambda conn: outbox.prune(conn, NOON + SECOND)) == 1


def test_what_is_asked_all_the_time_is_made_before_anybody_waits_for_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    busy = (settling._jobs_to_lock, claiming._claimable_until)
    for one in busy:  # as in a new process
        monkeypatch.setattr(one, "_text", "")
        monkeypatch.setattr(one, "_at_once", None)
    db.read_now(prepared.make_all)

    def refuse(*_: object) -> None:
        raise AssertionError("made when it was needed")

    monkeypatch.setattr(prepared, "spelled_out", refuse)
    locked, due = busy
    assert db.write_now(lambda conn: locked(conn, ids=[job.id]))[0][0] == job.id
    assert not db.read_now(lambda conn: due(conn, ids=[job.id], until=NOON))


def test_what_began_before_the_database_went_away_does_not_say_that_it_is_back() -> None:
    """Its answer was on its way already."""
    reach = Reach()
    with capture_logs() as lines:
        before = reach.failures
        reach.failed(StoreDown("gone"))
        reach.worked(before)
        reach.failed(StoreDown("gone"))
        assert [line["action"] for line in lines] == ["store.away"]
        reach.worked(reach.failures)
        reach.worked(before)
    assert [(line["action"], line.get("failures")) for line in lines[1:]] == [("store.back", 2)]
