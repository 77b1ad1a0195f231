"""What is measured: draining a backlog, punctuality at a steady rate, and a burst due in one second."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from bench import stored
from bench.machinery import Machine, Place, running, settled
from noonday.clock import SystemClock
from noonday.store.database import Database

LEAD = timedelta(seconds=4)  # between filling the database and the first due moment


@dataclass(frozen=True, slots=True)
class Lateness:
    p50_ms: float
    p99_ms: float
    fired: float  # share of what was due


async def drain(place: Place, count: int, slots: int) -> float:
    """Executions per second from plan to durable end: `count` jobs that were all due a moment ago."""
    db = Database(place.url)
    now = SystemClock().now()
    await asyncio.to_thread(stored.add, db, [stored.a_job(place, now, now) for _ in range(count)])
    await db.close()
    start = time.perf_counter()
    async with running(place, slots) as machine:
        machine.marks.wanted = count
        await settled(machine, count)
    return count / (time.perf_counter() - start)


async def steady(place: Place, rate: int, seconds: int, slots: int) -> Lateness:
    """`rate` jobs that fire once a second each, evenly spread over it."""
    db = Database(place.url)
    now = SystemClock().now()
    made = [
        stored.a_job(place, now, now + LEAD + timedelta(seconds=i / rate), timedelta(seconds=1))
        for i in range(rate)
    ]
    await asyncio.to_thread(stored.add, db, made)
    await db.close()
    first = (now + LEAD).timestamp()
    async with running(place, slots) as machine:
        await asyncio.sleep(max(0.0, first + seconds + 2 - time.time()))
    return _lateness(machine, first + 1, first + seconds, rate * (seconds - 1))


async def burst(place: Place, count: int, slots: int) -> tuple[float, float]:
    """Seconds from the due moment of `count` jobs until the last was started, and until all is durable."""
    db = Database(place.url)
    now = SystemClock().now()
    due = now + LEAD + timedelta(seconds=count / 500)
    await asyncio.to_thread(stored.add, db, [stored.a_job(place, now, due) for _ in range(count)])
    await db.close()
    assert SystemClock().now() < due - LEAD, "filling the database took too long"
    async with running(place, slots) as machine:
        machine.marks.wanted = count
        await settled(machine, count)
        durable = time.time() - due.timestamp()
    return max(started for _, started in machine.marks.seen) - due.timestamp(), durable


def _lateness(machine: Machine, since: float, until: float, due: int) -> Lateness:
    late = sorted(started - at for at, started in machine.marks.seen if since <= at < until)
    if not late:
        return Lateness(float("nan"), float("nan"), 0.0)
    assert late[0] >= 0, "a run was started early"
    return Lateness(late[len(late) // 2] * 1000, late[int(len(late) * 0.99)] * 1000, len(late) / due)
