"""Pages over 10,000 jobs and 1,000,000 rows of history beside the same pages over an empty database."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from httpx2 import ASGITransport, AsyncClient

from bench import stored
from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.clock import SystemClock
from noonday.control.system import LocalStatus
from noonday.ids import new_id
from noonday.store import migrate
from noonday.store.columns import instant_text
from noonday.store.database import Database
from noonday.web import routes

PATHS: Final = ("/", "/ui/jobs", "/ui/jobs?q=crowd-77", "/ui/runs", "/ui/timeline", "/ui/load", "/ui/new")
MOST: Final = 25.0  # times as long as over nothing
_ROUNDS: Final = 5
_SPAN: Final = timedelta(days=7)


def measure(jobs: int = 10_000, rows: int = 1_000_000) -> dict[str, Any]:
    """Seconds of each page with nothing and with everything, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        empty, full = (f"sqlite:///{Path(folder) / name}.db" for name in ("empty", "full"))
        for url in (empty, full):
            migrate.upgrade(url)
        db = Database(full)
        stored.add_crowd(db, jobs)
        db.close_now()
        _add_history(Path(folder) / "full.db", rows)
        without, within = asyncio.run(_timed(empty)), asyncio.run(_timed(full))
    pages = {
        path: {"empty_s": without[path], "full_s": within[path], "ratio": within[path] / without[path]}
        for path in PATHS
    }
    return {"pages": pages, "jobs": jobs, "rows": rows}


def tell(found: dict[str, Any]) -> None:
    print(
        f"\npages over {found['jobs']:,} jobs and {found['rows']:,} rows of history, beside an empty database"
    )
    for path, page in found["pages"].items():
        word = "" if page["ratio"] <= MOST else f"   more than {MOST:g} times"
        print(
            f"  {path:<22} {page['full_s'] * 1000:8.1f} ms beside {page['empty_s'] * 1000:6.1f} ms, "
            f"ratio {page['ratio']:5.1f}{word}"
        )


async def _timed(url: str) -> dict[str, float]:
    db, clock = Database(url), SystemClock()
    status = LocalStatus(instance_id="bench", started_at=clock.now(), slots=10)
    app = create_app(ApiServices(db=db, clock=clock, status=lambda: status))
    routes.install(app)
    found = {}
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        for path in PATHS:
            found[path] = await _median(client, path)
    await db.close()
    return found


async def _median(client: AsyncClient, path: str) -> float:
    spent = []
    for _ in range(_ROUNDS + 1):  # the first one warms up
        start = time.perf_counter()
        answer = await client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        spent.append(time.perf_counter() - start)
    return statistics.median(spent[1:])


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


if __name__ == "__main__":
    tell(measure())
