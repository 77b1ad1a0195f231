"""Statements of the busiest roads, past what the library does for each of them. Values go as text, so each
place in a statement says of which type it is; what comes back is as the driver reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, PoolProxiedConnection

__all__ = ["NOTHING", "Asked", "Heard", "Known", "ask", "dispatch", "heard", "lay", "rows"]

T = TypeVar("T")


class Asked(Protocol):
    """The answer to a statement: it may still be on its way."""

    def rows(self) -> Sequence[Sequence[Any]]: ...

    def count(self) -> int:
        """How many rows it concerned."""
        ...


def ask(conn: Connection, sql: str, values: Sequence[Any] = ()) -> Asked:
    """Nobody waits until an answer is read, its own or that of a later statement, or until the commit: there
    it fails, if it does."""
    if conn.dispatch.before_cursor_execute:  # somebody wants to hear of statements
        return heard(conn, sql, tuple(values))
    return _Sent(conn, sql, values)


def dispatch(conn: Connection) -> None:
    """What was asked goes now, though nobody waits for it: the server is at work meanwhile."""
    if not conn.dispatch.before_cursor_execute:
        _told(conn, None, lambda: _wire(conn.connection).dispatch())


def rows(conn: Connection, sql: str, values: Sequence[Any] = ()) -> Sequence[Sequence[Any]]:
    return ask(conn, sql, values).rows()


class _Sent:
    __slots__ = ("_answer", "_conn", "_sql")

    def __init__(self, conn: Connection, sql: str, values: Sequence[Any]) -> None:
        self._conn = conn
        self._sql = sql
        self._answer: Asked = _told(conn, sql, lambda: _wire(conn.connection).send(sql, values))

    def rows(self) -> Sequence[Sequence[Any]]:
        return _told(self._conn, self._sql, self._answer.rows)

    def count(self) -> int:
        return _told(self._conn, self._sql, self._answer.count)


def _told(conn: Connection, sql: str | None, act: Callable[[], T]) -> T:
    try:
        return act()
    except Exception as exc:  # as the library tells it: is the connection gone, and with it all others?
        conn._handle_dbapi_exception(exc, sql, None, None, None)


def heard(conn: Connection, sql: str, values: Any) -> Asked:
    """The same by the library, at once."""
    return Heard(conn.exec_driver_sql(sql, values))


class Heard:
    """What the library was asked for."""

    def __init__(self, made: CursorResult[Any]) -> None:
        self._made = made

    def rows(self) -> Sequence[Sequence[Any]]:
        return self._made.all()

    def count(self) -> int:
        return self._made.rowcount


class Known:
    """Rows that are there already."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows = rows

    def rows(self) -> Sequence[Sequence[Any]]:
        return self._rows

    def count(self) -> int:
        return len(self._rows)


NOTHING: Final[Asked] = Known(())  # to a statement about no rows, which was never made


def lay(engine: Engine) -> None:
    """Each transaction takes them. By events they would cost each statement."""
    dialect: Any = engine.dialect
    dialect.do_commit, dialect.do_rollback = _commit, _rollback


def _commit(connection: PoolProxiedConnection) -> None:
    _wire(connection).commit()


def _rollback(connection: PoolProxiedConnection) -> None:
    """Asked for whenever a connection comes back, most often after its commit."""
    _wire(connection).rollback()


def _wire(connection: PoolProxiedConnection) -> Any:
    driver: Any = connection.dbapi_connection
    return driver.wire
