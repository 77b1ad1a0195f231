"""Threads and transactions: one writer on SQLite, a small pool on PostgreSQL; who is told after a commit."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Literal, TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, Engine

from noonday.domain.execution import SkipReason
from noonday.domain.job import JobId
from noonday.store import dialects, listening, notices
from noonday.store.engines import StoreOptions, in_memory, make_engine, normalise_url
from noonday.store.sockets import Sockets
from noonday.store.threads import Standing, Threads
from noonday.store.trying import TRIES, CommitUnknown, Reach, StoreDown, finish, patiently

__all__ = ["CommitUnknown", "Database", "StoreDown", "Subscription"]

T = TypeVar("T")
_LONGEST_WAIT: Final = 0.1  # seconds for the one before: somebody outside may hold a row for long


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
        self.relay: Callable[[frozenset[str]], None] | None = None  # another way to tell other processes
        self.count_skips: Callable[[JobId, SkipReason, int], None] = _uncounted  # told after each commit
        self.one_writer = self.dialect == "sqlite"
        self._reach = Reach()
        self._serial = threading.Lock()  # a courtesy: the rows themselves say who may change them
        self._ears = threading.Lock()  # subscribing happens in the loop, waking in the threads
        self._subscribers: dict[str, WeakSet[Subscription]] = {topic: WeakSet() for topic in notices.TOPICS}
        self._standing = Standing()  # of the one writer
        if self.one_writer:
            self._writer = make_engine(self.url, self.options)
            self.threads = Threads(1, "noonday-writer", self._standing.still, self._standing.begin)
            if in_memory(self.url):
                self._reader, self._readers = self._writer, self.threads
            else:
                readers = self.options.readers
                self._reader = make_engine(self.url, self.options, connections=readers, reading=True)
                self._readers = Threads(readers, "noonday-reader", lambda: False)
        else:
            self._writer = make_engine(self.url, self.options, connections=self.options.connections)
            unread = Sockets(self._writer).unread
            self.threads = Threads(self.options.connections, "noonday-store", unread)
            # The same connections; a look that tries to write is refused.
            self._reader = self._writer.execution_options(postgresql_readonly=True)
            self._readers = self.threads

    async def write(self, work: Callable[[Connection], T], *, serially: bool = False) -> T:
        """Serially: one after the other, for those of this process who would pass by each other's rows."""
        return await self.threads.run(partial(self._commit_serially if serially else self._commit, work))

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._readers.run(partial(self._look, work))

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """As `write`, for code without an event loop; blocks."""
        return self.threads.run_now(partial(self._commit, work))

    def read_now(self, work: Callable[[Connection], T]) -> T:
        return self._readers.run_now(partial(self._look, work))

    def subscribe(self, *topics: str) -> Subscription:
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
        elif self.options.transaction_pooling:
            await listening.suppose(self.wake, lambda: self.relay is not None)
        else:
            from noonday.store.hearing import hear_postgres  # noqa: PLC0415 - SQLite needs no driver beside its own

            await hear_postgres(self.url, self.origin, self.wake)

    def wake(self, topics: frozenset[str]) -> None:
        with self._ears:
            found = {one for topic in topics for one in self._subscribers.get(topic, ())}
        for subscription in found:
            subscription.set_from_anywhere(topics)

    async def close(self) -> None:
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """Finish what has begun, then let go of all connections."""
        self.threads.end()
        self._readers.end()
        self._writer.dispose()
        self._reader.dispose()

    def _commit(self, work: Callable[[Connection], T]) -> T:
        try:
            result, topics, skips = self._try(self._writer, lambda conn: self._transact(conn, work))
        except CommitUnknown:
            self.wake(listening.ALL)  # if it was made, nobody here would hear of it
            raise
        self.wake(topics)
        for (job_id, reason), count in skips.items():
            self.count_skips(job_id, reason, count)
        if topics and self.relay is not None:
            self.relay(topics)
        return result

    def _commit_serially(self, work: Callable[[Connection], T]) -> T:
        mine = self._serial.acquire(timeout=_LONGEST_WAIT)
        try:
            return self._commit(work)
        finally:
            if mine:
                self._serial.release()

    def _look(self, work: Callable[[Connection], T]) -> T:
        def look(conn: Connection) -> T:
            with conn.begin():
                return work(conn)

        return self._try(self._reader, look)

    def _try(self, engine: Engine, act: Callable[[Connection], T]) -> T:
        """Patiently; but while the database is known to be away, once: whoever waits for it comes again."""
        before = self._reach.failures
        try:
            result = patiently(engine, act, tries=1 if before else TRIES)
        except StoreDown as exc:
            self._reach.failed(exc)
            raise
        self._reach.worked(before)
        return result

    def _transact(
        self, conn: Connection, work: Callable[[Connection], T]
    ) -> tuple[T, frozenset[str], Mapping[notices.Skip, int]]:
        transaction = conn.begin()
        self._standing.busy(True)
        notices.told(conn)  # left by a transaction that rolled back
        notices.skips(conn)
        try:
            result = work(conn)
            topics = notices.told(conn)
            if topics:
                dialects.of(conn).notify(conn, listening.payload(self.origin, topics))
        except BaseException:
            transaction.rollback()
            raise
        finally:
            self._standing.busy(False)
        finish(transaction.commit)
        return result, topics, notices.skips(conn)

    async def _data_version(self) -> int:
        def ask() -> int:
            with self._writer.connect() as conn:
                driver = conn.connection.dbapi_connection
                assert isinstance(driver, sqlite3.Connection)
                return int(driver.execute("PRAGMA data_version").fetchone()[0])

        return await self.threads.run(ask)


def _uncounted(job_id: JobId, reason: SkipReason, count: int) -> None:
    pass


class Subscription(asyncio.Event):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.told = 0  # how often, for one whose event is set for other reasons too
        self.heeds: Callable[[frozenset[str]], bool] = lambda _: True
        self._home = loop

    def set_from_anywhere(self, topics: frozenset[str]) -> None:
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            self._home.call_soon_threadsafe(self._tell, topics)

    def _tell(self, topics: frozenset[str]) -> None:
        if self.heeds(topics):
            self.told += 1
            self.set()
