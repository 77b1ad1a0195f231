"""Instances that told of themselves, without their processes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from noonday.store import instances, leadership
from noonday.store.database import Database
from noonday.store.instances import Instance
from tests.factories import NOON

ALL = ("api", "scheduler", "worker")
KEY = "scheduler-leader"


def an_instance(name: str, *roles: str, **changes: Any) -> Instance:
    given: dict[str, Any] = {"host": "host", "pid": 1, "started_at": NOON, "heartbeat_at": NOON, "slots": 10}
    given["slots"] = 10 if not roles or "worker" in roles else 0
    return Instance(id=name, roles=roles or ALL, **(given | changes))


async def enter(db: Database, *those: Instance) -> None:
    def work(conn: Connection) -> None:
        for one in those:
            instances.enter(conn, one)

    await db.write(work)


async def elect(db: Database, name: str) -> int | None:
    me = leadership.Candidate(name=KEY, holder=name, host="host", pid=1, ttl=timedelta(seconds=30))
    return await db.write(lambda conn: leadership.take_term(conn, me, NOON))
