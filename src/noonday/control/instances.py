"""Instances as people handle them: who is there, who leads, how busy all are; drain and resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import NOBODY
from noonday.domain.errors import Conflict, NotFound
from noonday.domain.job import Lane
from noonday.ports import Leader
from noonday.store import audit, instances, leadership
from noonday.store.audit import AuditEntry
from noonday.store.backlog import backlog
from noonday.store.database import Database
from noonday.store.instances import DRAINED, DRAINING, RUNNING, SILENT_AFTER, Instance

__all__ = ["Instances", "Peer", "Roster", "Workers", "at_rest", "leader_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """An instance as the others see it."""

    instance: Instance
    silent_for: timedelta
    leads: bool

    @property
    def alive(self) -> bool:
        return self.silent_for < SILENT_AFTER

    @property
    def state(self) -> str:
        """What it does; from the moment at which people want it to drain it counts as draining."""
        if not self.alive:
            return "silent"
        own = self.instance
        return DRAINING if own.wanted == DRAINING and own.state == RUNNING and own.works else own.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    peers: tuple[Peer, ...]
    leader: Leader | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """All slots of all living workers: each is active, idle, or belongs to an instance that drains."""

    peers: tuple[Peer, ...]
    queue: Mapping[Lane, int]

    @property
    def total(self) -> int:
        return sum(peer.instance.slots for peer in self.peers)

    @property
    def active(self) -> int:
        return sum(min(one.busy, one.slots) for one in self._taking)

    @property
    def idle(self) -> int:
        return sum(max(one.slots - one.busy, 0) for one in self._taking)

    @property
    def draining(self) -> int:
        return self.total - self.active - self.idle

    @property
    def _taking(self) -> list[Instance]:
        return [peer.instance for peer in self.peers if peer.state == RUNNING]


class Instances:
    def __init__(self, db: Database, clock: Clock, leader_key: str) -> None:
        self._db = db
        self._clock = clock
        self._leader_key = leader_key

    async def roster(self) -> Roster:
        return await self._db.read(self._roster)

    async def workers(self) -> Workers:
        def look(conn: Connection) -> Workers:
            peers = self._roster(conn).peers
            living = tuple(peer for peer in peers if peer.alive and peer.instance.works)
            return Workers(peers=living, queue=backlog(conn, self._clock.now()).depths)

        return await self._db.read(look)

    async def drain(self, instance_id: str | None = None, by: str | None = None) -> tuple[Peer, ...]:
        """Let it, or every worker, finish what it runs and take nothing new; returns those concerned."""
        return await self._db.write(partial(self._want, DRAINING, instance_id, by))

    async def resume(self, instance_id: str | None = None, by: str | None = None) -> tuple[Peer, ...]:
        return await self._db.write(partial(self._want, RUNNING, instance_id, by))

    def _want(
        self, state: str, instance_id: str | None, by: str | None, conn: Connection
    ) -> tuple[Peer, ...]:
        concerned = _concerned(self._roster(conn).peers, instance_id)
        instances.want(conn, [peer.instance.id for peer in concerned], state)
        action = "drain" if state == DRAINING else "resume"
        for own in (peer.instance for peer in concerned):
            before, after = {"wanted": own.wanted}, {"wanted": state}
            now = self._clock.now()
            entry = AuditEntry(now, by or NOBODY, action, "instance", own.id, before, after)
            audit.record(conn, entry)
        ids = {peer.instance.id for peer in concerned}
        return tuple(peer for peer in self._roster(conn).peers if peer.instance.id in ids)

    def _roster(self, conn: Connection) -> Roster:
        now = self._clock.now()
        leader = leader_of(conn, self._leader_key, now)
        busy = instances.busy(conn)  # fresher than what the last beat said
        peers = tuple(
            Peer(
                instance=replace(one, busy=busy.get(one.id, 0)),
                silent_for=max(now - one.heartbeat_at, timedelta()),
                leads=leader is not None and leader.holder == one.id,
            )
            for one in instances.everyone(conn)
        )
        return Roster(peers=peers, leader=leader)


def leader_of(conn: Connection, key: str, now: datetime) -> Leader | None:
    """Who was elected and has not fallen silent since."""
    found = leadership.look(conn, key, now)
    if found is None or found.holder is None or found.left <= timedelta():
        return None
    return Leader(holder=found.holder, term=found.term, left=found.left)


def at_rest(peers: Sequence[Peer]) -> bool:
    """Does nothing run any more on those that were asked to drain? Whoever is gone runs nothing."""
    return all(peer.state in (DRAINED, "silent") for peer in peers)


def _concerned(peers: Sequence[Peer], instance_id: str | None) -> list[Peer]:
    if instance_id is None:  # one that is silent may wake up
        return [peer for peer in peers if peer.instance.works]
    found = [peer for peer in peers if peer.instance.id == instance_id]
    if not found:
        raise NotFound(f"there is no instance {instance_id!r}")
    if not found[0].instance.works:
        raise Conflict(f"instance {instance_id!r} has no worker: it takes no work that could be held back")
    return found
