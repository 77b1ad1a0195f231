from __future__ import annotations

from dataclasses import replace

from noonday.store import audit, instances, meta, outbox
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.instances import Instance
from tests.factories import NOON, an_id
from tests.store.store_steps import MINUTE, SECOND


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
