"""The processes that make up the scheduler, as they tell of themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, Text, bindparam, delete, func, select, update

from noonday.store import dialects, events
from noonday.store.dialects import Answers
from noonday.store.events import News
from noonday.store.notices import INSTANCES, tell
from noonday.store.prepared import prepared
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


_TOLD: Final = tuple(one.name for one in fields(Instance) if one.name != "wanted")


@prepared
def _state_and_wish(_: Answers) -> Select[Any]:
    mine = instances.c.id == bindparam("own", type_=Text)
    return select(instances.c.state, instances.c.wanted).where(mine)


def beat(conn: Connection, instance: Instance) -> None:
    values = {name: getattr(instance, name) for name in _TOLD} | {"roles": [*instance.roles]}
    was = _state_and_wish(conn, own=instance.id).first()
    if was is None:
        dialects.of(conn).insert(conn, instances, [values])
        return
    dialects.of(conn).update(conn, instances, [values])
    if was.state != instance.state:
        _tell_of(conn, instance, instance.state)


def enter(conn: Connection, instance: Instance) -> None:
    """The first beat. What was wanted of an earlier process of this name is forgotten: it starts running."""
    beat(conn, instance)
    dialects.of(conn).update(conn, instances, [{"id": instance.id, "wanted": RUNNING}])
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


def working(conn: Connection, alive_since: datetime) -> tuple[Instance, ...]:
    """Those that run executions and take new ones."""
    found = everyone(conn, alive_since)
    return tuple(one for one in found if one.works and RUNNING == one.state == one.wanted)


def get(conn: Connection, instance_id: str) -> Instance | None:
    row = conn.execute(select(instances).where(instances.c.id == instance_id)).first()
    return None if row is None else _read(row)


def _read(row: Row[tuple[object, ...]]) -> Instance:
    return Instance(**{**row._mapping, "roles": tuple(row.roles)})


def wanted(conn: Connection, instance_id: str) -> str:
    """What people want of this instance."""
    found = _state_and_wish(conn, own=instance_id).first()
    return RUNNING if found is None else str(found.wanted)


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
