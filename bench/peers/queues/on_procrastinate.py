"""procrastinate on PostgreSQL; its rows are kept."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import procrastinate

from bench.peers.marks import PG, empty_postgres, mark

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=PG), import_paths=[__name__])


@app.task(name="nothing", queue="bench")
async def nothing(key: int = 0, due: float = 0.0) -> None:
    mark(key, due)


def reset() -> None:
    empty_postgres()

    async def install() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(install())


def enqueue(count: int, due: float) -> None:
    async def add() -> None:
        async with app.open_async():
            later = nothing.configure(schedule_at=datetime.fromtimestamp(due, UTC)) if due else nothing
            for start in range(0, count, 1000):
                keys = range(start, min(count, start + 1000))
                await later.batch_defer_async(*({"key": key, "due": due} for key in keys))

    asyncio.run(add())


def worker(processes: int) -> list[list[str]]:
    command = str(Path(sys.executable).parent / "procrastinate")
    return [[command, "--log-level", "error", "-a", f"{__name__}.app", "worker", "-c", "10"]] * processes
