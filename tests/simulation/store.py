"""The one database of a simulated world, and the unsafe way that each process has to it.

No threads: a transaction runs where it is asked for, so that its moment is the same in every run of a seed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from sqlalchemy import Connection

from noonday.domain.errors import Unavailable
from noonday.store import dialects, migrate
from noonday.store.database import CommitUnknown, Database, Subscription
from noonday.store.engines import StoreOptions, make_engine, normalise_url
from noonday.store.notices import TOPICS
from noonday.store.threads import Standing, Threads
from tests.simulation.universe import Process, Universe

T = TypeVar("T")
Tell = Callable[["ProcessDatabase", frozenset[str]], None]
Deed = Literal["kill", "stop"]
Strike = Callable[[Deed], None]


class SharedStore:
    """Made once: statements stay compiled from one world to the next, only the rows are put back."""

    def __init__(self, conn: Connection, reset: Callable[[], None]) -> None:
        self.conn = conn
        self.reset = reset


@contextmanager
def sqlite_store(folder: Path) -> Iterator[SharedStore]:
    migrate.upgrade(f"sqlite:///{folder / 'template.db'}")
    engine = make_engine(normalise_url("sqlite://"), StoreOptions())
    template = sqlite3.connect(folder / "template.db")
    try:
        with engine.connect() as conn:
            driver = conn.connection.dbapi_connection
            assert isinstance(driver, sqlite3.Connection)
            yield SharedStore(conn, lambda: template.backup(driver))
    finally:
        template.close()
        engine.dispose()


@contextmanager
def postgres_store(url: str, patch: pytest.MonkeyPatch) -> Iterator[SharedStore]:
    patch.setattr(dialects.Postgres, "now", lambda _, conn, own: own)  # its clock is that of the world
    engine = make_engine(normalise_url(url), StoreOptions())
    tables = "jobs, job_dependencies, executions, attempts, audit, outbox, instances, leadership"
    try:
        with engine.connect() as conn:

            def reset() -> None:
                with conn.begin():
                    conn.exec_driver_sql(f"TRUNCATE {tables} CASCADE")

            yield SharedStore(conn, reset)
    finally:
        engine.dispose()


@dataclass(slots=True, kw_only=True)
class StoreFaults:
    """What is wrong with one process's way to the database. Shares are of its writes."""

    slow: float = 0.0  # seconds at most, before and after a transaction
    refuse: float = 0.0  # nothing is done
    forget: float = 0.0  # it is committed, but the answer is lost
    die_before: float = 0.0  # the process is killed
    die_after: float = 0.0
    stop_before: float = 0.0  # the process is stopped, and goes on with its write when it goes on
    stop_after: float = 0.0
    away_until: float = 0.0
    hangs: bool = False  # while it is away: no answer at all, rather than an error


@dataclass(slots=True)
class Trap:
    """For one write of a process: the next but so many."""

    left: int
    deed: Deed
    before: bool  # the commit, or after it


class ProcessDatabase(Database):
    """What the engine of one process takes for its database."""

    def __init__(
        self, store: SharedStore, universe: Universe, process: Process, tell: Tell, strike: Strike
    ) -> None:
        self.url = store.conn.engine.url
        self.options = StoreOptions()
        self.dialect = "sqlite" if self.url.get_backend_name() == "sqlite" else "postgresql"
        self.origin = process.name
        self.relay = None
        self.one_writer = self.dialect == "sqlite"
        self.threads = Threads(1, "unused", lambda: False)
        self._standing = Standing()
        self.faults = StoreFaults()
        self.trap: Trap | None = None
        self._store = store
        self._universe = universe
        self.process = process
        self._tell = tell
        self._strike = strike
        self._listening: dict[str, list[Subscription]] = defaultdict(list)

    async def write(self, work: Callable[[Connection], T], *, serially: bool = False) -> T:
        faults, chance = self.faults, self._universe.chance.random
        await self._on_the_way()
        if faults.refuse and chance() < faults.refuse:
            raise Unavailable("the database is away")
        sprung = self._sprung()
        await self._struck(sprung, True, faults.die_before, faults.stop_before)
        result = self.commit(work)
        await self._struck(sprung, False, faults.die_after, faults.stop_after)
        if faults.forget and chance() < faults.forget:
            raise CommitUnknown
        if self.away:
            raise CommitUnknown
        if faults.slow:
            await asyncio.sleep(chance() * faults.slow)
        return result

    async def read(self, work: Callable[[Connection], T]) -> T:
        await self._on_the_way()
        return self.look(work)

    @property
    def away(self) -> bool:
        return self.faults.away_until > self._universe.time

    async def _on_the_way(self) -> None:
        if self.faults.slow:
            await asyncio.sleep(self._universe.chance.random() * self.faults.slow)
        if self.away:
            if self.faults.hangs:
                await asyncio.sleep(self.faults.away_until - self._universe.time)
            raise Unavailable("the database is away")

    def _sprung(self) -> Trap | None:
        trap = self.trap
        if trap is None or trap.left > 0:
            if trap is not None:
                trap.left -= 1
            return None
        self.trap = None
        return trap

    async def _struck(self, trap: Trap | None, before: bool, dies: float, stops: float) -> None:
        """At the worst moment: right before or after a commit."""
        chance = self._universe.chance.random
        caught = trap.deed if trap is not None and trap.before is before else None
        if caught == "kill" or (dies and chance() < dies):
            self._strike("kill")
            await asyncio.Future()
        if caught == "stop" or (stops and chance() < stops):
            self._strike("stop")
            await asyncio.sleep(0)

    def commit(self, work: Callable[[Connection], T]) -> T:
        result, topics, _ = self._transact(self._store.conn, work)
        self.wake(topics)
        self._tell(self, topics)
        return result

    def look(self, work: Callable[[Connection], T]) -> T:
        with self._store.conn.begin():
            return work(self._store.conn)

    def subscribe(self, *topics: str) -> Subscription:
        made = Subscription(self.process.loop)
        for topic in topics:
            self._listening[topic].append(made)
        return made

    def wake(self, topics: frozenset[str]) -> None:
        for topic in TOPICS:
            if topic in topics:
                for event in self._listening[topic]:
                    event.set()
