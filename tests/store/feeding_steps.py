"""Rows that take the streams, and what the store says of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, select

from noonday.domain.execution import Execution, ExecutionId, Road
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.ports import Pledge
from noonday.store import executions, feeding
from noonday.store import tables as t
from noonday.store.claiming import Taken
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from tests.factories import LEASE, NOON, an_execution

ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)


def on_streams(db: Database, job: Job, when: datetime = NOON, **changes: object) -> Execution:
    """Planned and pledged, as the leader does it."""
    row = an_execution(job=job, scheduled_for=when, road=Road.STREAMS, **changes)
    db.write_now(lambda conn: executions.plan(conn, [row], {row.id}))
    return row


def claim_these(db: Database, *rows: Execution | str, now: datetime = NOON, instance: str = "i1") -> Taken:
    order = ClaimOrder(instance_id=instance, limit=len(rows), now=now, lease=LEASE)
    ids = [ExecutionId(row if isinstance(row, str) else row.id) for row in rows]
    return db.write_now(lambda conn: executions.claim_these(conn, order, ids))


def enqueued(db: Database, row: Execution) -> datetime | None:
    query = select(t.executions.c.enqueued_at).where(t.executions.c.id == row.id)
    found: datetime | None = db.read_now(lambda conn: conn.execute(query).scalar_one())
    return found


def unfed(db: Database, before: datetime = NOON, limit: int = 100) -> list[Pledge]:
    return db.write_now(lambda conn: feeding.unfed(conn, before, limit))


@contextmanager
def held(db: Database, lock: Callable[[Connection], object]) -> Iterator[None]:
    """Another transaction that has locked something and does not end yet."""
    locked, done = threading.Event(), threading.Event()

    def work(conn: Connection) -> None:
        lock(conn)
        locked.set()
        assert done.wait(20)

    thread = threading.Thread(target=lambda: db.write_now(work))
    thread.start()
    assert locked.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join(20)
