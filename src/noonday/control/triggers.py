"""Webhooks and channels as people and senders handle them: calls that start jobs, and who waits for what."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import Jobs
from noonday.control.patterns import KnownPatterns
from noonday.domain.errors import Conflict
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, JobState, Trigger
from noonday.domain.trigger import channel_of
from noonday.domain.webhooks import path_of, pattern_of
from noonday.ids import new_id
from noonday.ports import Silence, Telemetry
from noonday.store import deliveries, registrations, webhooks
from noonday.store.database import Database
from noonday.store.deliveries import Delivery, Started
from noonday.store.pages import Page
from noonday.store.registrations import Kind, Registration
from noonday.store.webhooks import Call

__all__ = ["Receipt", "Triggers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a delivery has started; `replayed`: it came before, and nothing was started now."""

    delivery: Delivery
    replayed: bool = False


class _Outdated(Exception):
    """A job that was to start waits for this path no more; others may do so since."""


class Triggers:
    def __init__(self, db: Database, clock: Clock, jobs: Jobs, telemetry: Telemetry | None = None) -> None:
        self._db = db
        self._clock = clock
        self._jobs = jobs
        self._telemetry = telemetry or Silence()
        self._patterns = KnownPatterns(db)

    async def deliver(self, call: Call, delivery_id: str | None = None) -> Receipt:
        """Start each job that waits for the path of the call, once for each delivery id."""
        call = replace(call, path=path_of(call.path))
        try:
            receipt = await self._written(call, delivery_id, anew=False)
        except _Outdated:
            receipt = await self._written(call, delivery_id, anew=True)
        if not receipt.replayed:
            self._telemetry.triggered("webhook", sum(map(_runs, receipt.delivery.started)))
        return receipt

    async def _written(self, call: Call, delivery_id: str | None, *, anew: bool) -> Receipt:
        candidates = await self._patterns.match(call.path, anew=anew)

        def work(conn: Connection) -> Receipt:
            now = self._clock.now()
            delivery = Delivery(id=delivery_id or new_id(now), path=call.path, received_at=now)
            if not deliveries.take(conn, delivery):
                return _again(deliveries.get(conn, delivery.id), delivery)
            entries = webhooks.start(conn, call, candidates, now)
            if len(entries) < len(candidates) and call.service is None and not anew:
                raise _Outdated
            deliveries.started(conn, delivery.id, entries)
            return Receipt(delivery=replace(delivery, started=tuple(entries)))

        return await self._db.write(work)

    async def deliveries(self, *, limit: int = 50, offset: int = 0) -> Page[Delivery]:
        return await self._db.read(lambda conn: deliveries.page(conn, limit, offset))

    async def registered(
        self, kind: Kind, *, limit: int = 50, offset: int = 0, service: str | None = None
    ) -> Page[Registration]:
        return await self._db.read(lambda conn: registrations.page(conn, kind, limit, offset, service))

    async def counts(self, service: str | None = None) -> dict[Kind, int]:
        return await self._db.read(
            lambda conn: {kind: registrations.count(conn, kind, service) for kind in Kind}
        )

    async def waiting_for(self, path: str, service: str | None = None) -> tuple[str, list[Registration]]:
        """The path as it is understood, and which jobs a call of it would reach; nothing runs."""
        plain = path_of(path)
        return plain, await self._db.read(lambda conn: registrations.waiting_for(conn, plain, service))

    async def register(self, kind: Kind, id_or_name: str, pattern: str, by: str | None = None) -> Job:
        """Let calls or messages start the job; it waits for one pattern of each kind, the newest."""
        if kind is Kind.WEBHOOK:
            change = {"webhook": pattern_of(pattern)}
        else:
            change = {"channel": channel_of(pattern)}

        def edit(job: Job) -> Job:
            if job.state is JobState.CANCELLED:
                raise Conflict(f"{job.name!r} is cancelled: nothing starts it again")
            return replace(job, trigger=replace(job.trigger, **change))

        return await self._jobs.change(id_or_name, edit, by)

    async def remove(
        self, id_or_name: str, by: str | None = None, kind: Kind | None = None
    ) -> tuple[Job, Trigger]:
        """Both, or one of them. The job, whose schedule stays, and what it waited for until now."""
        found = Trigger()
        left = {each.value: None for each in Kind if kind in (None, each)}

        def edit(job: Job) -> Job:
            nonlocal found
            found = job.trigger
            return replace(job, trigger=replace(job.trigger, **left))

        return await self._jobs.change(id_or_name, edit, by), found


def _runs(entry: Started) -> bool:
    return bool(entry["status"] != ExecutionState.SKIPPED.value)


def _again(first: Delivery | None, now: Delivery) -> Receipt:
    if first is None:
        raise Conflict(f"the delivery {now.id!r} was forgotten this moment; send it again")
    if first.path != now.path:
        raise Conflict(f"the delivery {now.id!r} has come before, for another path: {first.path}")
    return Receipt(delivery=first, replayed=True)
