"""pgqueuer on asyncpg, with its log table."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job

from bench.peers.marks import PG, empty_postgres, mark

BATCH = int(os.environ.get("BENCH_BATCH", "100"))


def reset() -> None:
    empty_postgres()

    async def install() -> None:
        connection = await asyncpg.connect(PG)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    asyncio.run(install())


def enqueue(count: int, due: float) -> None:
    async def add() -> None:
        connection = await asyncpg.connect(PG)
        queries = Queries(AsyncpgDriver(connection))
        for start in range(0, count, 1000):
            keys = range(start, min(count, start + 1000))
            later = timedelta(seconds=max(0.0, due - time.time())) if due else None
            payloads = [b"%d %r" % (key, due) for key in keys]
            await queries.enqueue(
                ["nothing"] * len(keys), payloads, [0] * len(keys), [later] * len(keys) if due else None
            )
        await connection.close()

    asyncio.run(add())


async def _work() -> None:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(PG)))

    @queue.entrypoint("nothing")
    async def nothing(job: Job) -> None:
        key, due = (job.payload or b"").split()
        mark(int(key), float(due))

    await queue.run(batch_size=BATCH)


def worker(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", __name__]] * processes


if __name__ == "__main__":
    uvloop.run(_work())
