"""Pages over many jobs or a long history beside the same pages over an empty database."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from httpx2 import ASGITransport, AsyncClient

from bench import crowd
from bench.figures import Figure
from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.clock import SystemClock
from noonday.control.system import LocalStatus
from noonday.engine.tallier import Tallier, TallierConfig
from noonday.ids import new_id
from noonday.store import migrate
from noonday.store.columns import instant_text
from noonday.store.database import Database
from noonday.web import routes

PATHS: Final = (
    "/",
    "/ui/jobs",
    "/ui/jobs?q=crowd-77",
    "/ui/jobs?sort=-next_run_at",
    "/ui/runs",
    "/ui/runs?q=status:failed",
    "/ui/runs?q=crowd-77",
    "/ui/timeline",
    "/ui/load",
    "/ui/calendar",
    "/ui/new",
    "/api/v2/jobs",
    "/api/v2/stats",
)
OF_A_JOB: Final = ("/ui/jobs/crowd-7", "/ui/jobs/crowd-7/runs")
_ROUNDS: Final = 5
_SPAN: Final = timedelta(days=7)


def figures(jobs: int, rows: int) -> list[Figure]:
    """Each page with nothing and with everything behind it; those of a job beside few of them."""
    with tempfile.TemporaryDirectory() as folder:
        without = asyncio.run(_timed(_filled(folder, "empty"), PATHS))
        without |= asyncio.run(_timed(_filled(folder, "few", 10), OF_A_JOB))
        within = asyncio.run(_timed(_filled(folder, "full", jobs, rows), (*PATHS, *OF_A_JOB)))
    return [
        Figure(
            section="pages",
            case=f"over {jobs:,} jobs and {rows:,} rows of history",
            name=path,
            role="ours",
            rounds=(_values(within[path], without[path]),),
        )
        for path in within
    ]


def _values(full: tuple[float, float], empty: tuple[float, float]) -> dict[str, float]:
    return {
        "full_ms": full[1] * 1000,
        "empty_ms": empty[1] * 1000,
        "first_ms": full[0] * 1000,
        "ratio": full[1] / empty[1],
    }


def _filled(folder: str, name: str, jobs: int = 0, rows: int = 0) -> str:
    """A database whose leader has been at work: what is past is tallied."""
    path = Path(folder) / f"{name}.db"
    url = f"sqlite:///{path}"
    migrate.upgrade(url)
    if jobs:
        db = Database(url)
        crowd.add(db, jobs)
        _add_history(path, rows)
        asyncio.run(_tally(db))
        db.close_now()
    return url


async def _tally(db: Database) -> None:
    config = TallierConfig()
    tallier = Tallier(db=db, clock=SystemClock(), config=config)
    while await tallier.run_once() != config.every:
        pass


async def _timed(url: str, paths: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Of each page the first look, and the median of those after it."""
    db, clock = Database(url), SystemClock()
    status = LocalStatus(instance_id="bench", started_at=clock.now(), slots=10)
    app = create_app(ApiServices(db=db, clock=clock, status=lambda: status))
    routes.install(app)
    found = {}
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        for path in paths:
            found[path] = await _looks(client, path)
    await db.close()
    return found


async def _looks(client: AsyncClient, path: str) -> tuple[float, float]:
    spent = []
    for _ in range(_ROUNDS + 1):
        start = time.process_time()  # the machine may have other things to do
        answer = await client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        spent.append(time.process_time() - start)
    return spent[0], statistics.median(spent[1:])


def _add_history(path: Path, rows: int) -> None:
    """Ended runs, spread evenly over the jobs and the last week, in order of time."""
    with sqlite3.connect(path) as connection:
        jobs = [row[0] for row in connection.execute("select id from jobs")]
        now = SystemClock().now()

        def made(number: int) -> tuple[object, ...]:
            at = now - _SPAN * ((rows - number) / rows)
            text, end = instant_text(at), instant_text(at + timedelta(seconds=1 + number % 50))
            state = "failed" if number % 40 == 0 else "completed"
            return (new_id(at), jobs[number % len(jobs)], text, state, number, text, text, end, text)

        connection.executemany(
            "insert into executions (id, job_id, cause, scheduled_for, state, number, claimed_at, started_at,"
            " completed_at, created_at) values (?, ?, 'schedule', ?, ?, ?, ?, ?, ?, ?)",
            map(made, range(rows)),
        )
    connection.close()
