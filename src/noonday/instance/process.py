"""One process of the scheduler: from settings to ready, and from the first signal to exit 0."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

import structlog

from noonday.api.app import ApiServices, create_app
from noonday.api.guard import Access
from noonday.clock import Clock, SyncedClock, SystemClock
from noonday.control.system import LocalStatus
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.errors import invalid
from noonday.domain.job import Job
from noonday.engine.engine import EngineConfig, Role
from noonday.engine.loop import first_line
from noonday.instance import policies
from noonday.instance.parts import ClusterConfig, Parts, assembled, made_up_id
from noonday.instance.server import Server, bind, url_of
from noonday.settings import Settings
from noonday.targets.checks import check_target
from noonday.targets.config import TargetsConfig
from noonday.targets.signing import check_callback_token
from noonday.telemetry import logs

log = structlog.get_logger(__name__)


class Instance:
    """Made of settings; `run` returns after `stop` is set and everything has been brought to an end."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.url = ""  # where it listens, once it does
        self.ready = asyncio.Event()
        self._settings = settings
        self._clock = clock or (
            SystemClock() if settings.database_url.startswith("sqlite") else SyncedClock()
        )
        self._networks = policies.networks(settings)
        self._stopping = False

    async def run(self, stop: asyncio.Event) -> bool:
        """Was everything durable in the end?"""
        settings = self._settings
        load_tasks(settings.task_modules)
        with bind(settings.host, settings.port) as sock:
            self.url = url_of(sock, settings.host)
            async with assembled(
                database_url=settings.database_url,
                clock=self._clock,
                config=_engine_config(settings),
                targets=partial(self._targets, sock.getsockname()[1]),
                stop=stop,
                cluster=_cluster_config(settings),
                url=self.url,
            ) as parts:
                server = Server(create_app(self._services(parts)))
                return await self._live(parts, server, sock, stop)

    async def _live(self, parts: Parts, server: Server, sock: socket.socket, stop: asyncio.Event) -> bool:
        await parts.engine.begin()
        async with asyncio.TaskGroup() as group:
            actors = [group.create_task(actor.run(), name=actor.name) for actor in parts.actors]
            serving = group.create_task(server.serve([sock]), name="api")
            await server.ready.wait()
            log.info("Noonday is ready on %s", self.url, action="ready", url=self.url)
            self.ready.set()
            await stop.wait()
            self._stopping = True
            grace = self._settings.shutdown_grace
            log.info("stopping: running work may finish", action="stop", grace_seconds=grace.total_seconds())
            durable = await parts.engine.finish(grace)
            server.should_exit = True
            await serving
            for actor in actors:
                actor.cancel()
        log.info("stopped", action="stopped")
        return durable

    def _services(self, parts: Parts) -> ApiServices:
        settings = self._settings
        return ApiServices(
            db=parts.db,
            clock=parts.clock,
            status=partial(self._status, parts),
            check_token=partial(check_callback_token, parts.secret),
            vet=self._vet,
            defaults=policies.defaults(settings),
            access=Access(host=settings.host, allowed_hosts=settings.allowed_hosts),
            v2_enabled=settings.v2_enabled,
        )

    def _status(self, parts: Parts) -> LocalStatus:
        engine = parts.engine
        working = Role.WORKER in engine.config.roles
        return LocalStatus(
            instance_id=engine.config.instance_id,
            started_at=parts.started_at,
            running=working,
            is_leader=Role.SCHEDULER in engine.config.roles and engine.elector.leading,
            draining=self._stopping or engine.worker.draining,
            slots=engine.worker.slots if working else 0,
            busy=engine.worker.busy,
            last_check_at=engine.counters.last_check_at,
        )

    def _targets(self, port: int, secret: bytes) -> TargetsConfig:
        settings = self._settings
        return TargetsConfig(
            signing_secret=secret,
            public_url=settings.model_copy(update={"port": port}).base_url,
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
        roles=frozenset(map(Role, settings.roles)) if settings.scheduler_enabled else frozenset({Role.API}),
        slots=settings.workers,
        lease=settings.lease_ttl,
        lookahead=settings.lookahead,
        check_interval=settings.check_interval,
        keep_runs=settings.history_keep_runs,
        keep_days=settings.history_keep_days,
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
    logs.configure(level=settings.log_level, form=settings.log_format)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(_until_told(settings))


async def _until_told(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _told, stop, number)
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


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - not there on Windows

    return uvloop.new_event_loop()
