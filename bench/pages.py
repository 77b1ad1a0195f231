"""Pages over many jobs or a long history beside the same pages over an empty database."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from httpx2 import ASGITransport, AsyncClient

from bench import crowd, past
from bench.figures import Figure
from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.clock import SystemClock
from noonday.control.system import LocalStatus
from noonday.store import migrate
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
    url = f"sqlite:///{Path(folder) / name}.db"
    migrate.upgrade(url)
    if jobs:
        db = Database(url)
        crowd.add(db, jobs)
        db.close_now()
        past.add(url, rows)
    return url


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
