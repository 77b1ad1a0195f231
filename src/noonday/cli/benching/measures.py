"""What `noonday bench` measures: one commit, a backlog worked off, punctuality at a rate, and a burst."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from noonday.cli.benching import filling
from noonday.cli.benching.machine import Mark, running
from noonday.cli.benching.places import Place
from noonday.cli.benching.stalls import Stalls, watched
from noonday.clock import SystemClock
from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.ports import Parcel
from noonday.queue.redis_streams import RedisStreams
from noonday.redis_link import RedisLink
from noonday.store.database import Database

__all__ = ["Burst", "Commit", "Drain", "Steady", "burst", "commit", "drain", "lateness", "peak_mb", "steady"]

JOBS: Final = 10  # kinds of work among the runs of a backlog
LEAD: Final = 2.0  # seconds between the last job stored and the first due moment
_WATCHED: Final = 0.5  # seconds before the first due moment from which the machine is watched
_PATIENCE: Final = 10.0  # seconds after the last due moment for those that are late


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    median_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    runs: int
    per_second: float
    cpu_us: float  # of this process, for each run


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    rate: int
    due: int
    fired: int
    early: int
    p50_ms: float | None  # None: nothing fired
    p99_ms: float | None
    max_ms: float | None
    stalls: Stalls  # of the machine itself, meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    runs: int
    last_started_s: float
    durable_s: float


async def commit(place: Place, times: int = 100) -> Commit:
    """One row written in a transaction of its own, there and back."""
    db, clock = Database(place.url), SystemClock()

    def table(conn: Any) -> None:
        conn.exec_driver_sql("CREATE TABLE bench_commits (number INTEGER)")

    def write(conn: Any) -> None:
        conn.exec_driver_sql("INSERT INTO bench_commits VALUES (1)")

    try:
        await db.write(table)
        moments = [clock.monotonic()]
        for _ in range(times):
            await db.write(write)
            moments.append(clock.monotonic())
    finally:
        await db.close()
    spent = sorted(after - before for before, after in pairwise(moments))
    return Commit(median_ms=statistics.median(spent) * 1000, p99_ms=_at(spent, 0.99) * 1000)


async def drain(place: Place, count: int, slots: int) -> Drain:
    """Runs that wait already, from the first start to the durable end of all of them."""
    kind = filling.Kind(version=1 if place.redis is None else 2)
    made, runs = filling.waiting(kind, count, min(JOBS, count))
    await asyncio.to_thread(_store, place, made, runs)
    if place.redis is not None:
        await enqueue(place.redis, place.prefix, runs)
    async with running(place, slots) as machine:
        await machine.all_started(1, 30)
        cpu, done = time.process_time(), machine.settled
        await machine.all_settled(count)
        spent = machine.now() - machine.marks[0][1]
        cpu = time.process_time() - cpu
    return Drain(runs=count, per_second=count / spent, cpu_us=cpu / max(1, count - done) * 1e6)


async def steady(place: Place, rate: int, seconds: int, slots: int) -> Steady:
    """`rate` jobs that fire once a second each, evenly spread over it."""
    async with running(place, slots) as machine:
        lead = timedelta(seconds=LEAD + rate / 500)
        first = machine.clock.now() + lead
        spread = [first + timedelta(seconds=number / rate) for number in range(rate)]
        every = timedelta(seconds=1)
        made = [filling.recurring(machine.kind, at, every, runs=seconds) for at in spread]
        await asyncio.to_thread(filling.add, machine.db, made)
        await asyncio.sleep(max(0.0, first.timestamp() - machine.now() - _WATCHED))
        async with watched() as stalls:
            await machine.all_started(rate * seconds, first.timestamp() + seconds + _PATIENCE - machine.now())
        await machine.all_settled(len(machine.marks))
    return lateness(machine.marks, rate, rate * seconds, stalls)


async def burst(place: Place, count: int, slots: int) -> Burst:
    """Jobs that are all due at one moment: how long after it the last has started, and all is durable."""
    async with running(place, slots) as machine:
        due = machine.clock.now() + timedelta(seconds=LEAD + count / 500)
        made = (filling.once(machine.kind, due) for _ in range(count))
        await asyncio.to_thread(filling.add, machine.db, made)
        await machine.all_started(1, due.timestamp() + _PATIENCE - machine.now())
        await machine.all_settled(count)
        durable = machine.now() - due.timestamp()
    last = max(started for _, started in machine.marks) - due.timestamp()
    return Burst(runs=count, last_started_s=last, durable_s=durable)


def lateness(marks: Sequence[Mark], rate: int, due: int, stalls: Stalls) -> Steady:
    late = sorted(started - at for at, started in marks)
    return Steady(
        rate=rate,
        due=due,
        fired=len(late),
        early=sum(one < 0 for one in late),
        p50_ms=_at(late, 0.5) * 1000 if late else None,
        p99_ms=_at(late, 0.99) * 1000 if late else None,
        max_ms=late[-1] * 1000 if late else None,
        stalls=stalls,
    )


def peak_mb() -> float | None:
    """The most memory that this process has had, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not there on Windows

    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


async def enqueue(redis: str, prefix: str, runs: Sequence[Execution]) -> None:
    """Runs that are planned, put on the streams as the planner does."""
    link = RedisLink(redis)
    try:
        road = RedisStreams(link, prefix=prefix, consumer="bench")
        await road.prepare()
        await road.put([Parcel(run.lane, run.id) for run in runs])
    finally:
        await link.close()


def _store(place: Place, made: Sequence[Job], runs: Sequence[Execution]) -> None:
    db = Database(place.url)
    try:
        filling.add(db, made, runs, pledged=place.redis is not None)
    finally:
        db.close_now()


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
