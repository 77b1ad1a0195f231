"""The database, the hands and the engine of one process, made in order and closed in reverse."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import DBAPIError

from noonday.clock import Clock, SyncedClock
from noonday.domain.errors import Unavailable
from noonday.engine.engine import Engine, EngineConfig, Role, Surroundings
from noonday.engine.events import Publisher
from noonday.engine.loop import Actor, Wish
from noonday.engine.timekeeper import Timekeeper
from noonday.instance.service_urls import StoredServices
from noonday.leadership.database import DatabaseLeadership
from noonday.ports import Leadership, Telemetry
from noonday.store import meta, migrate
from noonday.store.database import Database
from noonday.store.engines import StoreOptions
from noonday.store.instances import Instance as Beat
from noonday.targets.config import TargetsConfig
from noonday.targets.dispatch import Targets
from noonday.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from noonday.instance.beside_redis import BesideRedis
    from noonday.queue.notices import RedisNotices

log = structlog.get_logger(__name__)

_PATIENCE = 30.0  # seconds that a start waits for its database


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What an instance shares with others beside the database."""

    redis_url: str | None = None
    streams: bool = True  # whether version 2 takes the streams where there is a Redis
    prefix: str = "crawler"
    leader_key: str = "scheduler-leader"
    leader_ttl: timedelta = timedelta(seconds=30)
    metrics_namespace: str = "crawler"
    store: StoreOptions = field(default_factory=StoreOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    db: Database
    redis: BesideRedis | None
    clock: Clock
    targets: Targets
    engine: Engine
    metrics: Metrics
    secret: bytes
    started_at: datetime
    notices: RedisNotices | None = None
    services: StoredServices | None = None
    events: Publisher | None = None

    @property
    def telemetry(self) -> Telemetry:
        return self.events or self.metrics

    @property
    def actors(self) -> list[Actor]:
        own: list[Actor] = [Ears(self.db, self.clock)]
        if self.services is not None:
            own.append(self.services)
        if self.events is not None:
            own.append(self.events)
        if isinstance(self.clock, SyncedClock):
            own.append(Timekeeper(db=self.db, clock=self.clock))
        if self.notices is not None:
            own.append(Messenger(self.notices, self.clock))
        return [*own, *self.engine.actors]


class Ears(Actor):
    """Hears what other processes commit."""

    name = "ears"

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._db = db

    async def run_once(self) -> Wish:
        await self._db.listen()
        return timedelta(seconds=1)


class Messenger(Actor):
    """Tells other instances over Redis what is committed here, and hears what they tell."""

    name = "messenger"

    def __init__(self, notices: RedisNotices, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._notices = notices

    async def run_once(self) -> Wish:
        await self._notices.run()
        return timedelta(seconds=1)


@asynccontextmanager
async def assembled(
    *,
    database_url: str,
    clock: Clock,
    config: EngineConfig,
    targets: Callable[[bytes], TargetsConfig],
    stop: asyncio.Event,
    cluster: ClusterConfig | None = None,
    url: str = "",
) -> AsyncIterator[Parts]:
    """`targets` is given the secret that this database keeps for signing; `stop` ends the wait for it."""
    await _migrate(database_url, clock, stop)
    cluster = cluster or ClusterConfig()
    async with AsyncExitStack() as exits:
        db = Database(database_url, cluster.store)
        exits.push_async_callback(db.close)
        if isinstance(clock, SyncedClock):
            await Timekeeper(db=db, clock=clock).run_once()
        redis = _redis(cluster, config.instance_id)
        if redis is not None:
            exits.push_async_callback(redis.close)
        secret = await db.write(meta.secret)
        services = StoredServices(db=db, clock=clock)
        await services.run_once()
        hands = Targets(replace(targets(secret), find_service=services.url_of))
        exits.push_async_callback(hands.close)
        yield replace(_parts(db, redis, clock, hands, config, cluster, secret, url), services=services)


def _parts(  # noqa: PLR0913, PLR0917 - the one place that knows everything
    db: Database,
    redis: BesideRedis | None,
    clock: Clock,
    hands: Targets,
    config: EngineConfig,
    cluster: ClusterConfig,
    secret: bytes,
    url: str,
) -> Parts:
    started_at = clock.now()
    metrics = Metrics(cluster.metrics_namespace)
    events = _publisher(db, clock, metrics, config.keep_events)

    def describe() -> Beat:
        return Beat(
            id=config.instance_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=tuple(sorted(config.roles)),
            started_at=started_at,
            heartbeat_at=clock.now(),
            slots=engine.slots.size if Role.WORKER in config.roles else 0,
            busy=engine.slots.busy,
            state=engine.state,
            version=own_version(),
            leads=Role.SCHEDULER in config.roles and engine.elector.leading,
            url=url,
            road="streams" if engine.streaming else "database",
        )

    around = Surroundings(
        db=db,
        clock=clock,
        target=hands,
        knows=hands.knows,
        cancel_remote=hands.cancel_remote,
        describe=describe,
        queue=redis.streams() if redis is not None and cluster.streams else None,
        leadership=_leadership(db, redis, clock, config.instance_id, cluster),
        receiver=None if redis is None else redis.receiver(),
        telemetry=events or metrics,
        domain_of=hands.domain_of,
    )
    engine = Engine(around, config)
    notices = None
    if redis is not None:
        notices = redis.notices(db.origin, db.wake)
        db.relay = notices.tell
    return Parts(
        db=db,
        redis=redis,
        clock=clock,
        targets=hands,
        engine=engine,
        metrics=metrics,
        secret=secret,
        started_at=started_at,
        notices=notices,
        events=events,
    )


def _redis(cluster: ClusterConfig, instance_id: str) -> BesideRedis | None:
    if cluster.redis_url is None:
        return None
    from noonday.instance.beside_redis import BesideRedis  # noqa: PLC0415 - 7 MB that not everybody needs

    return BesideRedis(cluster.redis_url, prefix=cluster.prefix, instance_id=instance_id)


def _publisher(db: Database, clock: Clock, metrics: Metrics, keep: int) -> Publisher | None:
    return Publisher(db=db, clock=clock, telemetry=metrics, keep=keep) if keep else None


def _leadership(
    db: Database, redis: BesideRedis | None, clock: Clock, holder: str, cluster: ClusterConfig
) -> tuple[Leadership, ...]:
    """The key in Redis decides where it can be reached, its twin in the database where not."""
    key, ttl = cluster.leader_key, cluster.leader_ttl
    twin = DatabaseLeadership(db, clock, key=key, ttl=ttl, holder=holder)
    return (twin,) if redis is None else (redis.leadership(db, clock, key=key, ttl=ttl), twin)


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


@lru_cache(maxsize=1)
def own_version() -> str:
    """Read once: it stands in a file, and each heartbeat tells it."""
    try:
        return version("noonday")
    except PackageNotFoundError:
        return ""


def made_up_id() -> str:
    """Unique per start, so that nobody mistakes a new process for a dead one."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"
