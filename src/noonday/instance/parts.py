"""The database, the hands and the engine of one process, made in order and closed in reverse."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version

import structlog
from sqlalchemy.exc import DBAPIError

from noonday.clock import Clock
from noonday.domain.errors import Unavailable
from noonday.engine.engine import Engine, EngineConfig, Surroundings
from noonday.engine.loop import Actor, Wish
from noonday.store import meta, migrate
from noonday.store.database import Database
from noonday.store.instances import Instance as Beat
from noonday.targets.config import TargetsConfig
from noonday.targets.dispatch import Targets

log = structlog.get_logger(__name__)

_PATIENCE = 30.0  # seconds that a start waits for its database


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    db: Database
    clock: Clock
    targets: Targets
    engine: Engine
    secret: bytes
    started_at: datetime

    @property
    def actors(self) -> list[Actor]:
        return [Ears(self.db, self.clock), *self.engine.actors]


class Ears(Actor):
    """Hears what other processes commit."""

    name = "ears"

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._db = db

    async def run_once(self) -> Wish:
        await self._db.listen()
        return timedelta(seconds=1)


@asynccontextmanager
async def assembled(
    *,
    database_url: str,
    clock: Clock,
    config: EngineConfig,
    targets: Callable[[bytes], TargetsConfig],
    stop: asyncio.Event,
) -> AsyncIterator[Parts]:
    """`targets` is given the secret that this database keeps for signing; `stop` ends the wait for it."""
    await _migrate(database_url, clock, stop)
    db = Database(database_url)
    try:
        secret = await db.write(meta.secret)
        hands = Targets(targets(secret))
        try:
            yield _parts(db, clock, hands, config, secret)
        finally:
            await hands.close()
    finally:
        await db.close()


def _parts(db: Database, clock: Clock, hands: Targets, config: EngineConfig, secret: bytes) -> Parts:
    started_at = clock.now()

    def describe() -> Beat:
        return Beat(
            id=config.instance_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=tuple(sorted(config.roles)),
            started_at=started_at,
            heartbeat_at=clock.now(),
            slots=engine.worker.slots,
            busy=engine.worker.busy,
            state="draining" if engine.worker.draining else "running",
            version=own_version(),
        )

    around = Surroundings(
        db=db,
        clock=clock,
        target=hands,
        knows=hands.knows,
        cancel_remote=hands.cancel_remote,
        describe=describe,
    )
    engine = Engine(around, config)
    return Parts(db=db, clock=clock, targets=hands, engine=engine, secret=secret, started_at=started_at)


async def _migrate(database_url: str, clock: Clock, stop: asyncio.Event) -> None:
    """Under a lock, so that several may start at once. A database that is still starting gets a moment."""
    until = clock.monotonic() + _PATIENCE
    said = False
    while True:
        try:
            return await asyncio.to_thread(migrate.upgrade, database_url)
        except DBAPIError as exc:
            reason = str(exc.orig).strip().split("\n", 1)[0]
            if clock.monotonic() > until or stop.is_set():
                raise Unavailable(f"the database cannot be used: {reason}") from exc
            if not said:
                log.warning("waiting for the database", action="start", error=reason)
                said = True
        await asyncio.sleep(0.3)


def own_version() -> str:
    try:
        return version("noonday")
    except PackageNotFoundError:
        return ""


def made_up_id() -> str:
    """Unique per start, so that nobody mistakes a new process for a dead one."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"
