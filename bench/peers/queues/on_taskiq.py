"""taskiq on Redis Streams; results in Redis if BENCH_RESULTS says so."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from bench.peers.marks import REDIS, empty_redis, mark

broker = RedisStreamBroker(REDIS)
if os.environ.get("BENCH_RESULTS"):
    broker = broker.with_result_backend(RedisAsyncResultBackend(REDIS, result_ex_time=3600))


@broker.task(task_name="nothing")
async def nothing(key: int = 0, due: float = 0.0) -> None:
    mark(key, due)


reset = empty_redis


def enqueue(count: int, due: float) -> None:
    async def add() -> None:
        await broker.startup()
        for key in range(count):
            await nothing.kiq(key, due)
        await broker.shutdown()

    asyncio.run(add())


def worker(processes: int) -> list[list[str]]:
    command = str(Path(sys.executable).parent / "taskiq")
    return [[command, "worker", f"{__name__}:broker", "--workers", str(processes), "--log-level", "ERROR"]]
