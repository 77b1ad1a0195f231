"""APScheduler 3, ten threads, in memory or with its PostgreSQL store (BENCH_STORE=postgres)."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from bench.peers.marks import PG, empty_postgres
from bench.peers.shape import ALL, fire, first_due, interval

_STORED = os.environ.get("BENCH_STORE") == "postgres"
_FAR = datetime(2100, 1, 1, tzinfo=UTC)
_TABLE = """create table apscheduler_jobs (
    id varchar(191) primary key, next_run_time float8, job_state bytea not null)"""


def _options(number: int) -> dict[str, Any]:
    due = datetime.fromtimestamp(first_due(number), UTC)
    return {
        "trigger": "interval",
        "seconds": interval(number),
        "start_date": due,
        "end_date": _FAR,
        "args": (number,),
        "id": f"job-{number}",
        "next_run_time": due,
        "misfire_grace_time": 3600,  # late rather than not at all
    }


def _scheduler() -> BackgroundScheduler:
    made = BackgroundScheduler(timezone=UTC)
    url = PG.replace("postgresql://", "postgresql+psycopg://")
    made.add_jobstore(SQLAlchemyJobStore(url=url) if _STORED else MemoryJobStore())
    return made


def setup() -> None:
    """Its rows written in bulk, as it would have written them one by one."""
    if not _STORED:
        return
    empty_postgres()
    pickler = BackgroundScheduler(timezone=UTC)
    pickler.start(paused=True)
    with psycopg.connect(PG, autocommit=True) as connection:
        connection.execute(_TABLE)
        connection.execute("create index on apscheduler_jobs (next_run_time)")
        with connection.cursor().copy("copy apscheduler_jobs from stdin (format binary)") as rows:
            rows.set_types(["varchar", "float8", "bytea"])
            for number in range(ALL):
                job = pickler.add_job(f"{__name__}:fire", **_options(number))
                state = pickle.dumps(job.__getstate__(), pickle.HIGHEST_PROTOCOL)
                rows.write_row((job.id, first_due(number), state))
                pickler.remove_job(job.id)
    pickler.shutdown(wait=False)


def add(count: int) -> float:
    """Seconds for so many, one by one, through its own API."""
    if _STORED:
        empty_postgres()
    scheduler = _scheduler()
    scheduler.start(paused=True)
    began = time.perf_counter()
    for number in range(count):
        scheduler.add_job(fire, **_options(number))
    spent = time.perf_counter() - began
    scheduler.shutdown(wait=False)
    return spent


def processes() -> dict[str, list[str]]:
    return {"scheduler": [sys.executable, "-m", __name__]}


def main() -> None:
    logging.basicConfig(level=logging.CRITICAL)
    scheduler = _scheduler()
    scheduler.start(paused=True)
    if not _STORED:
        for number in range(ALL):
            scheduler.add_job(fire, **_options(number))
    scheduler.resume()
    threading.Event().wait()


if __name__ == "__main__":
    main()
