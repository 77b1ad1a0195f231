"""Threads and transactions: one writer on SQLite, a small pool on PostgreSQL; who is told after a commit."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal, TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from noonday.domain.errors import Invalid, Problem, Unavailable
from noonday.store import dialects, listening, notices
from noonday.store.engines import StoreOptions, in_memory, make_engine, normalise_url

T = TypeVar("T")
TRIES = 4
FIRST_PAUSE = 0.05


class Database:
    """Runs `work(connection)` as one whole transaction in a thread of its own.

    The awaiting side may be cancelled at any moment: what has begun still commits or rolls back by itself.
    """

    def __init__(self, url: str, options: StoreOptions | None = None) -> None:
        self.url = normalise_url(url)
        self.options = options or StoreOptions()
        self.dialect: Literal["sqlite", "postgresql"] = (
            "sqlite" if self.url.get_backend_name() == "sqlite" else "postgresql"
        )
        self.origin = os.urandom(6).hex()  # marks our own notices
        self._ears = threading.Lock()  # subscribing happens in the loop, waking in the threads
        self._subscribers: dict[str, WeakSet[Subscription]] = {topic: WeakSet() for topic in notices.TOPICS}
        if self.dialect == "sqlite":
            self._writer = make_engine(self.url, self.options)
            self._writers = ThreadPoolExecutor(1, "noonday-writer")
            if in_memory(self.url):
                self._reader, self._readers = self._writer, self._writers
            else:
                readers = self.options.readers
                self._reader = make_engine(self.url, self.options, connections=readers, reading=True)
                self._readers = ThreadPoolExecutor(readers, "noonday-reader")
        else:
            self._writer = make_engine(self.url, self.options, connections=self.options.connections)
            self._writers = ThreadPoolExecutor(self.options.connections, "noonday-store")
            # The same connections; a look that tries to write is refused.
            self._reader = self._writer.execution_options(postgresql_readonly=True)
            self._readers = self._writers

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._commit, work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._look, work)

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """As `write`, for code without an event loop; blocks."""
        return self._writers.submit(self._commit, work).result()

    def read_now(self, work: Callable[[Connection], T]) -> T:
        return self._readers.submit(self._look, work).result()

    def subscribe(self, *topics: str) -> asyncio.Event:
        """An event that is set after each commit, here or in another process, that told one of the topics.

        It lives as long as the caller holds it.
        """
        made = Subscription(asyncio.get_running_loop())
        with self._ears:
            for topic in topics:
                self._subscribers[topic].add(made)
        return made

    async def listen(self) -> None:
        """Hear other processes, for ever; part of an instance's life."""
        if self.dialect == "sqlite":
            await listening.watch_sqlite(self._data_version, self.wake)
        else:
            await listening.hear_postgres(self.url, self.origin, self.wake)

    def wake(self, topics: frozenset[str]) -> None:
        with self._ears:
            found = {one for topic in topics for one in self._subscribers.get(topic, ())}
        for subscription in found:
            subscription.set_from_anywhere()

    async def close(self) -> None:
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """Finish what has begun, then let go of all connections."""
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._writer.dispose()
        self._reader.dispose()

    def _commit(self, work: Callable[[Connection], T]) -> T:
        result, topics = _patiently(self._writer, lambda conn: self._transact(conn, work))
        self.wake(topics)
        return result

    def _look(self, work: Callable[[Connection], T]) -> T:
        def look(conn: Connection) -> T:
            with conn.begin():
                return work(conn)

        return _patiently(self._reader, look)

    def _transact(self, conn: Connection, work: Callable[[Connection], T]) -> tuple[T, frozenset[str]]:
        transaction = conn.begin()
        notices.told(conn)  # left by a transaction that rolled back
        try:
            result = work(conn)
            topics = notices.told(conn)
            if topics:
                dialects.of(conn).notify(conn, listening.payload(self.origin, topics))
        except BaseException:
            transaction.rollback()
            raise
        _finish(transaction.commit)
        return result, topics

    async def _data_version(self) -> int:
        def ask() -> int:
            with self._writer.connect() as conn:
                driver = conn.connection.dbapi_connection
                assert isinstance(driver, sqlite3.Connection)
                return int(driver.execute("PRAGMA data_version").fetchone()[0])

        return await asyncio.get_running_loop().run_in_executor(self._writers, ask)


class Subscription(asyncio.Event):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._home = loop

    def set_from_anywhere(self) -> None:
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            self._home.call_soon_threadsafe(self.set)


class CommitUnknown(Unavailable):
    """The database went away while committing: the change may or may not have been made."""


def _finish(commit: Callable[[], None]) -> None:
    try:
        commit()
    except DBAPIError as exc:
        if exc.connection_invalidated:
            raise CommitUnknown from exc
        raise


def _patiently(engine: Engine, act: Callable[[Connection], T]) -> T:
    """Try again what failed for a passing reason and was rolled back for certain."""
    pause = FIRST_PAUSE
    for left in reversed(range(TRIES)):
        try:
            with engine.connect() as conn:
                return act(conn)
        except PoolTimeout as exc:
            raise Unavailable("no database connection became free") from exc
        except DataError as exc:
            raise Invalid(Problem("value", f"the database refuses it: {exc.orig}".strip())) from exc
        except DBAPIError as exc:
            if not _passing(exc):
                raise
            if not left:
                raise Unavailable(f"the database is not available: {exc.orig}".strip()) from exc
            time.sleep(pause)
            pause *= 2
    raise AssertionError("unreachable")


# SQLite: busy, locked, read-only, input/output error, disk full, cannot open
_SQLITE_PASSING = {5, 6, 8, 10, 13, 14}
# PostgreSQL: connection, resources (disk full), operator's doing (shutdown), system; and single states
_POSTGRES_PASSING = ("08", "53", "57", "58", "40001", "40P01", "55P03", "25006")


def _passing(exc: DBAPIError) -> bool:
    """Is the reason outside of the statement: a lock, a lost or refused connection, a full disk?"""
    if exc.connection_invalidated or isinstance(exc, InterfaceError):
        return True
    if isinstance(exc.orig, sqlite3.Error):
        return getattr(exc.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_PASSING
    state = getattr(exc.orig, "sqlstate", None)
    # Without a state the connection could not be made at all.
    return state.startswith(_POSTGRES_PASSING) if state else isinstance(exc, OperationalError)
