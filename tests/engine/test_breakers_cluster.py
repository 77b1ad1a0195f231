"""Two real instances on PostgreSQL and Redis, a target that fails and recovers: nothing is lost or burnt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from noonday.clock import SystemClock
from noonday.control.jobs import Jobs
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, JobId, RetryPolicy
from noonday.domain.schedule import Manual, Timing
from noonday.domain.target import FetchTarget
from noonday.engine.engine import EngineConfig
from noonday.ids import new_id
from noonday.instance.parts import ClusterConfig, Parts, assembled
from noonday.redis_link import RedisLink
from noonday.store import history
from noonday.targets.config import TargetsConfig
from tests.targets.hands import WebServer

CLOCK = SystemClock()
POLICY = BreakerPolicy(threshold=3, open_for=timedelta(seconds=2), probe_lease=timedelta(seconds=2))


@asynccontextmanager
async def running(database_url: str, redis_url: str, prefix: str, name: str) -> AsyncIterator[Parts]:
    cluster = ClusterConfig(
        redis_url=redis_url,
        prefix=prefix,
        leader_key=f"{prefix}:leader",
        leader_ttl=timedelta(seconds=2),
    )
    async with assembled(
        database_url=database_url,
        clock=CLOCK,
        config=EngineConfig(instance_id=name, slots=4, breaker=POLICY),
        targets=lambda secret: TargetsConfig(signing_secret=secret),
        stop=asyncio.Event(),
        cluster=cluster,
    ) as parts:
        await parts.engine.begin()
        tasks = [asyncio.create_task(actor.run(), name=actor.name) for actor in parts.actors]
        try:
            yield parts
            await parts.engine.finish(timedelta(seconds=10))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def fetching(jobs: Jobs, url: str, version: int, retries: int) -> Job:
    now = CLOCK.now()
    job = Job(
        id=JobId(new_id(now)),
        name=new_id(now),
        timing=Timing(schedule=Manual(), anchor_at=now),
        target=FetchTarget(url=url),
        retry=RetryPolicy(max_retries=retries, backoff=timedelta(milliseconds=100)),
        scheduler_version=version,
        created_at=now,
        updated_at=now,
    )
    return await jobs.create(job, by="test")


async def runs_of(parts: Parts, jobs: list[Job]) -> list[Execution]:
    ids = {job.id for job in jobs}
    page = await parts.db.read(lambda conn: history.page(conn, limit=1000))
    return [run for run in page.items if run.job_id in ids]


async def both(one: Parts, two: Parts, state: str) -> None:
    async with asyncio.timeout(20):
        while {one.engine.breakers.state, two.engine.breakers.state} != {state}:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("version", [1, 2])
async def test_work_is_delayed_while_the_target_is_down_and_all_of_it_done_after(
    postgres_url: str, redis_url: str, version: int
) -> None:
    prefix = f"test-{new_id(CLOCK.now())}"
    async with (
        WebServer() as target,
        running(postgres_url, redis_url, prefix, "one") as one,
        running(postgres_url, redis_url, prefix, "two") as two,
    ):
        target.answers(status=503)
        jobs = Jobs(one.db, CLOCK)
        failing = [await fetching(jobs, target.url, version, retries=0) for _ in range(POLICY.threshold)]
        for job in failing:
            await jobs.force_run(job.id)
        await both(one, two, "open")
        before = len(target.seen)
        waiting = [await fetching(jobs, target.url, version, retries=1000) for _ in range(40)]
        for job in waiting:
            await jobs.force_run(job.id)
        async with asyncio.timeout(30):
            while len(target.seen) < before + 2:  # two probes failed
                await asyncio.sleep(0.02)
        runs = await runs_of(one, waiting)
        assert sum(run.failures for run in runs) <= len(target.seen) - before
        assert {run.state for run in runs} <= {ExecutionState.PENDING, ExecutionState.RUNNING}
        target.answers(text="fine")
        async with asyncio.timeout(30):
            while {run.state for run in await runs_of(one, waiting)} != {ExecutionState.COMPLETED}:
                await asyncio.sleep(0.1)
        runs = await runs_of(one, waiting)
        assert len(runs) == 40
        for run in runs:
            attempts = await one.db.read(lambda conn, run=run: history.attempts(conn, run.id))  # type: ignore[misc]
            assert [attempt.number for attempt in attempts] == list(range(1, run.attempt + 1))
            assert run.attempt == run.failures + 1
        assert len(target.seen) == before + sum(run.attempt for run in runs)
        await both(one, two, "closed")
    link = RedisLink(redis_url)
    for key in await link.call("KEYS", f"{prefix}*"):
        await link.call("DEL", key)
    await link.close()
