"""The processes that make up the scheduler, as they tell of themselves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from noonday.store.tables import instances


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
    state: str = "running"  # running, draining
    version: str = ""
    leads: bool = False
    url: str = ""  # where its API listens
    road: str = "database"  # of its version 2 work: streams, or database
    wanted: str = "running"  # what people want: running, or draining; never written by a beat


def beat(conn: Connection, instance: Instance) -> None:
    values = asdict(instance) | {"roles": [*instance.roles]}
    del values["wanted"]
    done = conn.execute(update(instances).where(instances.c.id == instance.id).values(values))
    if not done.rowcount:
        conn.execute(insert(instances).values(values))


def everyone(conn: Connection, alive_since: datetime | None = None) -> tuple[Instance, ...]:
    """All that told something, or those that did so since then."""
    query = select(instances).order_by(instances.c.started_at, instances.c.id)
    if alive_since is not None:
        query = query.where(instances.c.heartbeat_at >= alive_since)
    return tuple(Instance(**{**row, "roles": tuple(row["roles"])}) for row in conn.execute(query).mappings())


def remove(conn: Connection, instance_id: str) -> None:
    conn.execute(delete(instances).where(instances.c.id == instance_id))


def forget(conn: Connection, silent_since: datetime) -> int:
    """Drop those that died without a word."""
    return conn.execute(delete(instances).where(instances.c.heartbeat_at < silent_since)).rowcount


list = everyone  # the word of the other stores' verbs; defined last so that the builtin is meant above
