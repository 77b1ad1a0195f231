"""Statements that go to PostgreSQL together, past the driver: what is sent, what fails, who hears of it."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError

from noonday.domain.errors import Invalid
from noonday.store import shortcuts, wires
from noonday.store.cursors import WiredConnection
from noonday.store.database import CommitUnknown, Database, StoreDown
from noonday.store.wires import Wire
from tests.proxy import Proxy
from tests.store.wire_steps import PUT, Server, kept


def test_nothing_goes_before_somebody_waits(wire: Wire, server: Server, postgres_url: str) -> None:
    first = wire.send(PUT, ("wire", "1"))
    second = wire.send("SELECT count(*) FROM meta WHERE key = %s::TEXT", ("wire",))
    assert server.state == "idle"
    assert second.rows() == [(1,)]
    assert first.count() == 1
    assert server.state == "idle in transaction"
    assert kept(postgres_url) == []
    wire.commit()
    assert kept(postgres_url) == ["1"]
    assert server.state == "idle"


def test_a_commit_takes_along_what_was_sent(wire: Wire, postgres_url: str) -> None:
    wire.send(PUT, ("wire", "1"))
    wire.commit()
    assert kept(postgres_url) == ["1"]


def test_a_rollback_takes_back_what_was_sent_and_what_was_not(wire: Wire, postgres_url: str) -> None:
    wire.send(PUT, ("wire 1", "1")).count()
    wire.send(PUT, ("wire 2", "2"))
    wire.rollback()
    wire.send(PUT, ("wire 3", "3"))
    wire.commit()
    assert kept(postgres_url) == ["3"]


def test_a_commit_of_nothing_says_nothing(wire: Wire, server: Server) -> None:
    before = server.ask("SELECT state_change FROM pg_stat_activity WHERE pid = %s")
    wire.commit()
    wire.rollback()
    assert server.ask("SELECT state_change FROM pg_stat_activity WHERE pid = %s") == before


def test_what_fails_fails_the_next_that_waits(wire: Wire, postgres_url: str) -> None:
    wire.send(PUT, ("wire", "1"))
    wire.send(PUT, ("wire", "2"))
    last = wire.send("SELECT 1")
    with pytest.raises(psycopg.errors.UniqueViolation):
        last.rows()
    wire.rollback()
    assert kept(postgres_url) == []
    assert wire.send("SELECT 1").rows() == [(1,)]


def test_what_fails_fails_the_commit(wire: Wire, server: Server, postgres_url: str) -> None:
    """Nothing of the transaction is kept, and that is certain: its commit was never done."""
    wire.send(PUT, ("wire", "1"))
    wire.send(PUT, ("wire", "2"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        wire.commit()
    assert server.state == "idle"  # nobody rolls back what could not be committed
    assert kept(postgres_url) == []


def test_an_answer_comes_as_the_driver_would_read_it(wire: Wire, wired: WiredConnection) -> None:
    query = "SELECT 1, 'a', NULL, true, now(), '{\"a\": [1]}'::jsonb, gen_random_uuid() IS NULL, 1.5::float8"
    assert wire.send(query).rows() == wired.execute(query).fetchall()


@pytest.mark.parametrize("value", ["", "ü €", "a'b\"c\\d", "%s", "NULL", "x" * 3_000_000])
def test_a_text_arrives_as_it_was_sent(wire: Wire, value: str) -> None:
    assert wire.send("SELECT %s::TEXT, '100%%'", (value,)).rows() == [(value, "100%")]


@pytest.mark.parametrize(
    ("value", "kind"), [(7, "INTEGER"), (True, "BOOLEAN"), (1.25, "FLOAT8"), (None, "TEXT")]
)
def test_a_value_arrives_as_it_was_sent(wire: Wire, value: object, kind: str) -> None:
    assert wire.send(f"SELECT %s::{kind}", (value,)).rows() == [(value,)]


def test_what_cannot_be_sent_is_refused_before_anything_goes(wire: Wire, server: Server) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        wire.send("SELECT %s::TEXT", ("a\0b",))
    with pytest.raises(TypeError, match="set"):
        wire.send("SELECT %s::TEXT", ({1},))
    wire.commit()
    assert server.state == "idle"


def test_much_goes_both_ways_at_once(wire: Wire) -> None:
    """More than the buffers of both sides hold: who only wrote would wait for ever."""
    size = 4_000_000
    asked = [wire.send("SELECT %s::TEXT", (str(n) * size,)) for n in range(5)]
    assert [one.rows() for one in asked] == [[(str(n) * size,)] for n in range(5)]


def test_the_driver_may_be_used_in_between(wire: Wire, wired: WiredConnection, postgres_url: str) -> None:
    wire.send(PUT, ("wire 1", "1"))
    wired.execute(PUT, ("wire 2", "2"))
    wire.send(PUT, ("wire 3", "3"))
    with wired.cursor("named") as stream:  # one that the server keeps
        assert sorted(stream.execute("SELECT value FROM meta WHERE key LIKE 'wire%'").fetchall()) == [
            ("1",),
            ("2",),
            ("3",),
        ]
    wire.send(PUT, ("wire 4", "4"))
    wired.commit()
    assert sorted(kept(postgres_url)) == ["1", "2", "3", "4"]


def test_a_statement_that_is_used_again_has_a_name(wire: Wire, wired: WiredConnection) -> None:
    for n in range(5):
        assert wire.send("SELECT %s::INTEGER + 1", (n,)).rows() == [(n + 1,)]
    assert [name for (name,) in wired.execute("SELECT name FROM pg_prepared_statements")] == ["noonday_1"]


def test_of_many_statements_the_least_used_are_forgotten(
    wire: Wire, wired: WiredConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "_MOST_PREPARED", 3)
    for n in range(10):
        for _ in range(4):
            assert wire.send(f"SELECT {n}").rows() == [(n,)]
    names = {name for (name,) in wired.execute("SELECT name FROM pg_prepared_statements")}
    assert names == {f"noonday_{n}" for n in (8, 9, 10)}


def test_what_the_driver_discards_is_prepared_anew(wire: Wire, wired: WiredConnection) -> None:
    """It discards all that has a name when something is rolled back to a savepoint, or dropped."""
    for _ in range(7):
        wire.send("SELECT 1").rows()
        wired.execute("SELECT 2")
    wired.execute("SAVEPOINT here")
    wired.execute("ROLLBACK TO SAVEPOINT here")
    for _ in range(7):
        assert wire.send("SELECT 1").rows() == [(1,)]
        assert wired.execute("SELECT 2").fetchall() == [(2,)]


def test_what_somebody_discards_is_prepared_anew(postgres_db: Database) -> None:
    """The transaction that meets it is tried again."""
    for _ in range(4):
        postgres_db.write_now(lambda conn: shortcuts.rows(conn, "SELECT 1"))
    tries: list[Connection] = []

    def work(conn: Connection) -> Any:
        tries.append(conn)
        if len(tries) == 1:
            conn.exec_driver_sql("DEALLOCATE ALL")
        return shortcuts.rows(conn, "SELECT 1")

    assert postgres_db.write_now(work) == [(1,)]
    assert len(tries) == 2


def test_a_statement_that_cannot_be_prepared_can_be_later(wire: Wire, wired: WiredConnection) -> None:
    """Its table is not there yet, or it came behind one that failed."""
    for _ in range(4):
        with pytest.raises(psycopg.errors.UndefinedTable):
            wire.send("SELECT 1 FROM later").rows()
        wire.rollback()
    wired.execute("CREATE TEMP TABLE later ()")
    wired.commit()
    for _ in range(4):
        wire.send("SELECT 1/0")
        with pytest.raises(psycopg.errors.DivisionByZero):
            wire.send("SELECT 1 FROM later").rows()
        wire.rollback()
    for _ in range(4):
        assert wire.send("SELECT 1 FROM later").rows() == []


def test_a_session_that_is_ended_is_heard_of(wire: Wire, wired: WiredConnection, server: Server) -> None:
    wire.send("SELECT 1").rows()
    server.end()
    with pytest.raises(psycopg.OperationalError):
        wire.send("SELECT 1").rows()
    assert wired.closed
    with pytest.raises(psycopg.OperationalError):
        wire.rollback()


def test_somebody_who_hears_of_statements_hears_of_all(postgres_db: Database) -> None:
    heard: list[str] = []

    def work(conn: Connection) -> None:
        event.listen(conn, "before_cursor_execute", lambda *args: heard.append(args[2]))
        assert shortcuts.rows(conn, "SELECT %s::INTEGER", (1,)) == [(1,)]

    postgres_db.read_now(work)
    assert heard == ["SELECT %s::INTEGER"]


def test_an_error_is_told_as_the_library_tells_it(postgres_db: Database) -> None:
    def work(conn: Connection) -> None:
        shortcuts.ask(conn, "SELECT 1 FROM nowhere")
        conn.execute(text("SELECT 1"))

    with pytest.raises(DBAPIError, match="nowhere"):
        postgres_db.write_now(work)
    with pytest.raises(Invalid, match="NUL"):
        postgres_db.write_now(lambda conn: shortcuts.ask(conn, "SELECT %s::TEXT", ("\0",)))


def test_a_look_cannot_write(postgres_db: Database) -> None:
    with pytest.raises(StoreDown, match="read-only"):
        postgres_db.read_now(lambda conn: shortcuts.ask(conn, PUT, ("wire", "1")).count())
    with pytest.raises(StoreDown, match="read-only"):
        postgres_db.read_now(lambda conn: shortcuts.ask(conn, PUT, ("wire", "1")) and None)


def test_a_server_that_takes_no_writes_is_not_told_otherwise(wire: Wire, wired: WiredConnection) -> None:
    """A standby refuses a transaction that says it will write, and not for a passing reason."""
    wired.execute("SET default_transaction_read_only = on")
    wired.commit()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        wire.send(PUT, ("wire", "1")).count()


def test_a_lock_that_is_not_given_is_tried_again_though_the_commit_went_with_it(postgres_url: str) -> None:
    """It failed for certain: the commit behind it was not done, and nobody need ask what became of it."""
    db = Database(postgres_url)
    db.write_now(lambda conn: shortcuts.ask(conn, PUT, ("wire", "1")) and None)
    tries: list[int] = []
    with psycopg.connect(postgres_url) as other:
        other.execute("UPDATE meta SET value = '2' WHERE key = 'wire'")

        def work(conn: Connection) -> None:
            tries.append(len(tries))
            shortcuts.ask(conn, f"SET LOCAL lock_timeout = {100 if len(tries) == 1 else 0}")
            shortcuts.ask(conn, "UPDATE meta SET value = value || '+' WHERE key = 'wire'")
            if len(tries) == 2:
                other.commit()

        db.write_now(work)
    db.close_now()
    assert (len(tries), kept(postgres_url)) == (2, ["2+"])


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_without_an_answer_is_of_unknown_outcome(postgres_url: str, made: bool) -> None:
    """The statement and its commit went together, and the connection was cut."""
    with Proxy.to(postgres_url) as proxy:
        db = Database(proxy.url)
        sprung = proxy.trap(b"COMMIT", answered=made)
        with pytest.raises(CommitUnknown):
            db.write_now(lambda conn: shortcuts.ask(conn, PUT, ("wire", "1")) and None)
        assert sprung.wait(10)
        assert kept(postgres_url) == (["1"] if made else [])
        db.close_now()


def test_with_the_database_away_a_statement_says_so(postgres_url: str) -> None:
    with Proxy.to(postgres_url) as proxy:
        db = Database(proxy.url)
        assert db.read_now(lambda conn: shortcuts.rows(conn, "SELECT 1")) == [(1,)]
        proxy.refuse()
        with pytest.raises(StoreDown):
            db.read_now(lambda conn: shortcuts.rows(conn, "SELECT 1"))
        proxy.resume()
        assert db.read_now(lambda conn: shortcuts.rows(conn, "SELECT 1")) == [(1,)]
        db.close_now()


def test_others_run_while_it_waits(wire: Wire, postgres_url: str) -> None:
    """The interpreter is free meanwhile: somebody else here ends the waiting."""
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(77)")
        asked = wire.send("SELECT pg_advisory_xact_lock(77), 1")
        helper = threading.Timer(0, lambda: other.execute("SELECT pg_advisory_unlock(77)"))
        helper.start()
        assert asked.rows()[0][1] == 1
        helper.join(10)
        wire.rollback()
