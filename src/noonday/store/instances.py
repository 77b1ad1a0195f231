"""The processes that make up the scheduler, as they tell of themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from noonday.store import dialects, events
from noonday.store.events import News
from noonday.store.notices import INSTANCES, tell
from noonday.store.tables import RUNNING as EXECUTING
from noonday.store.tables import executions, instances

RUNNING: Final = "running"
DRAINING: Final = "draining"  # takes nothing new; what it runs may finish
DRAINED: Final = "drained"  # and nothing of it runs any more
SILENT_AFTER: Final = timedelta(seconds=35)  # three beats and a little: whoever is silent for longer is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    id: str
    host: str
    pid: int
    roles: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime
    slots: int = 0
    busy: int = 0
    state: str = RUNNING  # or DRAINING, or DRAINED
    version: str = ""
    leads: bool = False
    url: str = ""  # where its API listens
    road: str = "database"  # of its version 2 work: streams, or database
    wanted: str = RUNNING  # what people want: RUNNING or DRAINING; never written by a beat

    @property
    def works(self) -> bool:
        return "worker" in self.roles


def beat(conn: Connection, instance: Instance) -> None:
    values = asdict(instance) | {"roles": [*instance.roles]}
    del values["wanted"]
    was = conn.execute(select(instances.c.state).where(instances.c.id == instance.id)).scalar()
    if was is None:
        conn.execute(insert(instances).values(values))
        return
    conn.execute(update(instances).where(instances.c.id == instance.id).values(values))
    if was != instance.state:
        _tell_of(conn, instance, instance.state)


def enter(conn: Connection, instance: Instance) -> None:
    """The first beat. What was wanted of an earlier process of this name is forgotten: it starts running."""
    beat(conn, instance)
    conn.execute(update(instances).where(instances.c.id == instance.id).values(wanted=RUNNING))
    _tell_of(conn, instance, "started")


def leave(conn: Connection, instance: Instance) -> None:
    """The last word."""
    remove(conn, instance.id)
    _tell_of(conn, instance, "stopped")


def _tell_of(conn: Connection, instance: Instance, what: str) -> None:
    told = {"instance": instance.id, "roles": [*instance.roles], "version": instance.version}
    events.append(conn, [News(at=instance.heartbeat_at, kind=f"instance.{what}", payload=told)])


def everyone(conn: Connection, alive_since: datetime | None = None) -> tuple[Instance, ...]:
    """All that told something, or those that did so since then."""
    query = select(instances).order_by(instances.c.started_at, instances.c.id)
    if alive_since is not None:
        query = query.where(instances.c.heartbeat_at >= alive_since)
    return tuple(map(_read, conn.execute(query)))


def get(conn: Connection, instance_id: str) -> Instance | None:
    row = conn.execute(select(instances).where(instances.c.id == instance_id)).first()
    return None if row is None else _read(row)


def _read(row: Row[tuple[object, ...]]) -> Instance:
    return Instance(**{**row._mapping, "roles": tuple(row.roles)})


def wanted(conn: Connection, instance_id: str) -> str:
    """What people want of this instance."""
    found = conn.execute(select(instances.c.wanted).where(instances.c.id == instance_id)).scalar()
    return RUNNING if found is None else str(found)


def want(conn: Connection, ids: Collection[str], state: str) -> None:
    """RUNNING or DRAINING; those concerned are told at once."""
    conn.execute(update(instances).where(dialects.of(conn).among(instances.c.id, ids)).values(wanted=state))
    tell(conn, INSTANCES)


def busy(conn: Connection) -> dict[str, int]:
    """How many attempts run on each right now; a run that went elsewhere takes no slot."""
    query = select(executions.c.instance_id, func.count()).where(EXECUTING, ~executions.c.remote)
    found = conn.execute(query.group_by(executions.c.instance_id))
    return {str(instance_id): int(count) for instance_id, count in found}


def remove(conn: Connection, instance_id: str) -> None:
    conn.execute(delete(instances).where(instances.c.id == instance_id))


def forget(conn: Connection, silent_since: datetime) -> int:
    """Drop those that died without a word."""
    return conn.execute(delete(instances).where(instances.c.heartbeat_at < silent_since)).rowcount


list = everyone  # the word of the other stores' verbs; defined last so that the builtin is meant above
