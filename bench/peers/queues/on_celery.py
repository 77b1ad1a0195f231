"""Celery on Redis with its default pool; results in PostgreSQL if BENCH_RESULTS says so."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from celery import Celery

from bench.peers.marks import PG, REDIS, empty_postgres, empty_redis, mark

_KEPT = bool(os.environ.get("BENCH_RESULTS"))
_BACKEND = "db+" + PG.replace("postgresql://", "postgresql+psycopg://") if _KEPT else None
app = Celery("bench", broker=REDIS, backend=_BACKEND)
app.conf.update(
    task_ignore_result=not _KEPT,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
    worker_send_task_events=False,
)


@app.task(name="nothing")
def nothing(key: int = 0, due: float = 0.0) -> None:
    mark(key, due)


def reset() -> None:
    empty_redis()
    if _KEPT:
        empty_postgres()


def enqueue(count: int, due: float) -> None:
    at = datetime.fromtimestamp(due, UTC) if due else None
    for key in range(count):
        nothing.apply_async((key, due), eta=at)


def worker(processes: int) -> list[list[str]]:
    quiet = ["-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    pool = ["-P", "prefork", "-c", str(processes)]
    return [[sys.executable, "-m", "celery", "-A", __name__, "worker", *quiet, *pool]]
