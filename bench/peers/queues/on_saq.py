"""saq on Redis, with its results."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from saq import Queue

from bench.peers.marks import REDIS, empty_redis, mark

queue = Queue.from_url(REDIS)


async def nothing(_context: Any, *, key: int = 0, due: float = 0.0) -> None:
    mark(key, due)


settings = {"queue": queue, "functions": [nothing], "concurrency": 10}

reset = empty_redis


def enqueue(count: int, due: float) -> None:
    async def add() -> None:
        await queue.connect()
        for key in range(count):
            await queue.enqueue("nothing", key=key, due=due, **({"scheduled": due} if due else {}))
        await queue.disconnect()

    asyncio.run(add())


def worker(processes: int) -> list[list[str]]:
    command = str(Path(sys.executable).parent / "saq")
    return [[command, f"{__name__}.settings", "-q", "--workers", str(processes)]]
