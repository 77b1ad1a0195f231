"""Statements that PostgreSQL works on while somebody does something else: answered and failing as told."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg
import pytest

from noonday.store.cursors import WiredConnection
from noonday.store.wires import Wire
from tests.store.wire_steps import PUT, Server, kept


def test_what_is_dispatched_is_done_though_nobody_waits(
    wire: Wire, server: Server, postgres_url: str
) -> None:
    put = wire.send(PUT, ("wire", "1"))
    wire.send("SELECT pg_advisory_xact_lock(7)")
    wire.dispatch()
    locked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = %s"
    until = time.monotonic() + 20
    while not server.ask(locked):
        assert time.monotonic() < until, "nothing was done"
    assert not put.known
    assert kept(postgres_url) == []
    wire.commit()
    assert put.count() == 1
    assert kept(postgres_url) == ["1"]


def test_answers_of_several_dispatches_are_read_in_any_order(wire: Wire) -> None:
    first = wire.send("SELECT 1")
    wire.dispatch()
    second = wire.send("SELECT 2")
    wire.dispatch()
    third, fourth = wire.send("SELECT 3"), wire.send("SELECT 4")
    assert second.rows() == [(2,)]
    assert first.known
    assert not third.known, "what was sent later is not waited for"
    assert fourth.rows() == [(4,)]
    assert (first.rows(), third.rows()) == ([(1,)], [(3,)])


def test_what_is_dispatched_before_a_failure_is_answered(wire: Wire, postgres_url: str) -> None:
    first = wire.send(PUT, ("wire", "1"))
    wire.dispatch()
    second = wire.send(PUT, ("wire", "2"))
    wire.dispatch()
    third = wire.send("SELECT 3")
    assert first.count() == 1
    with pytest.raises(psycopg.errors.UniqueViolation):
        second.count()
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        third.rows()
    wire.rollback()
    assert kept(postgres_url) == []
    assert wire.send("SELECT 1").rows() == [(1,)]


@pytest.mark.parametrize("ending", ["commit", "read", "rollback"])
def test_what_is_dispatched_behind_a_failure_fails_of_it(
    wire: Wire, server: Server, postgres_url: str, ending: str
) -> None:
    wire.send(PUT, ("wire", "1"))
    wire.send(PUT, ("wire", "2"))
    wire.dispatch()
    wire.send(PUT, ("wire later", "3"))
    wire.dispatch()
    last = wire.send("SELECT 1")
    if ending == "commit":
        with pytest.raises(psycopg.errors.UniqueViolation):
            wire.commit()
    elif ending == "read":
        with pytest.raises(psycopg.errors.UniqueViolation):
            last.rows()
        wire.rollback()
    else:
        wire.rollback()
    assert server.state == "idle"
    assert kept(postgres_url) == []
    wire.send(PUT, ("wire", "4"))
    wire.commit()
    assert kept(postgres_url) == ["4"]


def test_much_goes_out_while_much_is_unread(wire: Wire) -> None:
    """The server does not read on before somebody reads what it says."""
    size = 4_000_000
    asked = []
    for n in range(4):
        asked.append(wire.send("SELECT %s::TEXT", (str(n) * size,)))
        wire.dispatch()
    assert [one.rows() for one in asked] == [[(str(n) * size,)] for n in range(4)]


def test_the_driver_may_be_used_behind_a_dispatch(
    wire: Wire, wired: WiredConnection, postgres_url: str
) -> None:
    first = wire.send(PUT, ("wire", "1"))
    wire.dispatch()
    assert wired.execute("SELECT value FROM meta WHERE key = 'wire'").fetchone() == ("1",)
    assert first.count() == 1
    wire.commit()
    assert kept(postgres_url) == ["1"]


def test_a_session_that_ends_behind_a_dispatch_is_heard_of(
    wire: Wire, wired: WiredConnection, server: Server, postgres_url: str
) -> None:
    first = wire.send(PUT, ("wire", "1"))
    wire.dispatch()
    assert first.count() == 1
    server.end()
    wire.send("SELECT 1")
    with suppress(psycopg.OperationalError):  # as soon as the system knows
        wire.dispatch()
    with pytest.raises(psycopg.OperationalError):
        wire.receive()
    assert wired.closed
    with pytest.raises(psycopg.OperationalError):
        wire.rollback()
    assert kept(postgres_url) == []
