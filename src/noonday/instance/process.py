"""One process of the scheduler: from settings to ready, and from the first signal to exit 0."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, asynccontextmanager, nullcontext
from functools import partial
from importlib import import_module

import structlog

from noonday.clock import Clock, shared_clock
from noonday.control.system import LocalStatus
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.errors import invalid
from noonday.domain.job import Job
from noonday.engine.engine import EngineConfig, Role
from noonday.engine.loop import Actor, first_line
from noonday.instance import policies
from noonday.instance.callbacks import Callbacks, own_url
from noonday.instance.loading import all_is_loaded, loaded, loaded_beside, new_loop, share_one_heap
from noonday.instance.measuring import scrape_of
from noonday.instance.parts import ClusterConfig, Parts, assembled, made_up_id
from noonday.instance.processes import end_with_parent
from noonday.instance.sockets import bind, url_of
from noonday.settings import Settings
from noonday.targets.checks import check_target
from noonday.targets.config import TargetsConfig
from noonday.telemetry import logs
from noonday.telemetry.scraping import Scrape

log = structlog.get_logger(__name__)


class Instance:
    """Made of settings; `run` returns after `stop` is set and everything has been brought to an end."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.url = ""  # where it listens, once it does
        self.metrics_url = ""  # likewise, where METRICS_PORT is set
        self.ready = asyncio.Event()
        self._settings = settings
        self._clock = clock or shared_clock(settings.database_url)
        self._networks = policies.networks(settings)
        self._stopping = False
        self._metrics_sock: socket.socket | None = None
        self._callback_url = settings.public_url  # where targets report, if it is known from the start
        self._callbacks: Callbacks | None = None  # and where not

    async def run(self, stop: asyncio.Event) -> bool:
        """Was everything durable in the end?"""
        settings = self._settings
        load_tasks(settings.task_modules)
        with ExitStack() as exits:
            sock: socket.socket | None = None
            if self._has(Role.API):
                sock = exits.enter_context(bind(settings.host, settings.port))
                self.url = url_of(sock, settings.host)
                self._callback_url = own_url(settings, sock.getsockname()[1])
            if settings.metrics_port is not None:
                self._metrics_sock = exits.enter_context(
                    bind(settings.host, settings.metrics_port, "METRICS_PORT")
                )
                self.metrics_url = url_of(self._metrics_sock, settings.host)
            async with assembled(
                database_url=settings.database_url,
                clock=self._clock,
                config=_engine_config(settings),
                targets=self._targets,
                stop=stop,
                cluster=_cluster_config(settings),
                url=(self._callback_url or "") if self.url else "",
            ) as parts:
                return await self._live(parts, sock, stop)

    async def _live(self, parts: Parts, sock: socket.socket | None, stop: asyncio.Event) -> bool:
        own = await self._own_actors(parts)
        await parts.engine.begin()
        async with asyncio.TaskGroup() as group:
            actors = [group.create_task(actor.run(), name=actor.name) for actor in [*parts.actors, *own]]
            scrape = scrape_of(parts)
            async with aclosing(scrape), self._door(parts, sock, scrape), self._metrics_port(scrape):
                self._say_ready()
                self.ready.set()
                await stop.wait()
                durable = await self._finish(parts)
            for actor in actors:
                actor.cancel()
        log.info("stopped", action="stopped")
        return durable

    async def _own_actors(self, parts: Parts) -> list[Actor]:
        """A worker that can be told of no callback address looks for one before it takes work."""
        if not self._has(Role.WORKER) or self._callback_url is not None:
            return []
        self._callbacks = Callbacks(db=parts.db, clock=parts.clock)
        await self._callbacks.run_once()
        return [self._callbacks]

    @asynccontextmanager
    async def _door(self, parts: Parts, sock: socket.socket | None, scrape: Scrape) -> AsyncIterator[None]:
        if sock is None:
            yield
            return
        door = await loaded_beside("noonday.instance.door")
        status = partial(self._status, parts)
        async with door.opened(self._settings, parts, sock, status=status, vet=self._vet, scrape=scrape):
            yield

    def _metrics_port(self, scrape: Scrape) -> AbstractAsyncContextManager[None]:
        if self._metrics_sock is None:
            return nullcontext()
        from noonday.instance.metrics_port import answering  # noqa: PLC0415 - as above

        return answering(self._settings, self._metrics_sock, scrape)

    def _say_ready(self) -> None:
        roles = ",".join(self._settings.running_roles)
        if self.url:
            log.info("Noonday is ready on %s", self.url, action="ready", url=self.url, roles=roles)
        else:
            log.info("Noonday is ready, without an API", action="ready", roles=roles)

    async def _finish(self, parts: Parts) -> bool:
        self._stopping = True
        grace = self._settings.shutdown_grace
        log.info("stopping: running work may finish", action="stop", grace_seconds=grace.total_seconds())
        return await parts.engine.finish(grace)

    def _has(self, role: Role) -> bool:
        return role in self._settings.running_roles

    def _status(self, parts: Parts) -> LocalStatus:
        engine = parts.engine
        working = self._has(Role.WORKER)
        return LocalStatus(
            instance_id=engine.config.instance_id,
            started_at=parts.started_at,
            running=working,
            is_leader=self._has(Role.SCHEDULER) and engine.elector.leading,
            stopping=self._stopping,
            draining=self._stopping or engine.slots.draining,
            slots=engine.slots.size if working else 0,
            busy=engine.slots.busy,
            last_check_at=engine.counters.last_check_at,
            road="streams" if engine.streaming else "database",
            circuit_breaker_state=engine.breakers.state,
        )

    def _targets(self, secret: bytes) -> TargetsConfig:
        settings = self._settings
        return TargetsConfig(
            signing_secret=secret,
            public_url=self._callback_url,
            find_public_url=lambda: self._callbacks.url if self._callbacks is not None else None,
            services=settings.services,
            networks=self._networks,
            thread_slots=max(32, settings.workers),
            task_modules=settings.task_modules,
            clock=self._clock,
        )

    def _vet(self, job: Job) -> None:
        check_target(job.target, self._networks)


def _engine_config(settings: Settings) -> EngineConfig:
    return EngineConfig(
        instance_id=settings.instance_id or made_up_id(),
        configured_id=settings.instance_id is not None,
        roles=frozenset(map(Role, settings.running_roles)),
        slots=settings.workers,
        own_process=True,
        queue_batch=settings.queue_batch_size,
        lease=settings.lease_ttl,
        lookahead=settings.lookahead,
        check_interval=settings.check_interval,
        keep_runs=settings.history_keep_runs,
        keep_days=settings.history_keep_days,
        keep_events=settings.events_keep,
        breaker=BreakerPolicy(threshold=settings.cb_threshold, open_for=settings.cb_timeout),
    )


def _cluster_config(settings: Settings) -> ClusterConfig:
    return ClusterConfig(
        redis_url=settings.redis,
        streams=settings.v2_enabled,
        prefix=settings.queue_prefix,
        leader_key=settings.leader_key,
        leader_ttl=settings.leader_ttl,
        metrics_namespace=settings.metrics_namespace,
        store=policies.store_options(settings),
    )


def load_tasks(modules: Sequence[str]) -> None:
    """Import the modules that register tasks; they are looked for in the working folder too."""
    folder = os.getcwd()
    if modules and folder not in sys.path:
        sys.path.insert(0, folder)
    for module in modules:
        if module == "*":
            continue
        try:
            import_module(module)
        except Exception as exc:
            raise invalid("TASK_MODULES", module, f"cannot be imported: {first_line(exc)}") from exc


def run_instance(settings: Settings) -> int:
    """The exit code. The first SIGTERM or SIGINT ends it in order, the second at once."""
    share_one_heap()
    logs.configure(level=settings.log_level, form=settings.log_format)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if settings.redis is not None:
        loaded("noonday.instance.beside_redis")
    if not settings.database_url.startswith("sqlite"):
        loaded("noonday.store.hearing")
    all_is_loaded()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_until_told(settings))


async def _until_told(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _told, stop, number)
    end_with_parent(stop.set)
    return 0 if await Instance(settings).run(stop) else 1


def _told(stop: asyncio.Event, number: signal.Signals) -> None:
    if not stop.is_set():
        stop.set()
        return
    log.warning("told twice to stop: ending at once", action="stop", signal=number.name)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads, children and connections may take their time; leases make this as safe as a crash.
    os._exit(128 + number)
