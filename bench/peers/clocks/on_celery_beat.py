"""Celery beat with its file, and one worker. Its intervals have no grid: each counts from the last send."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from celery import Celery

from bench.peers.marks import FOLDER, REDIS, empty_redis, mark
from bench.peers.shape import ALL, first_due, interval

app = Celery("bench", broker=REDIS)
app.conf.update(
    task_ignore_result=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
)
_FILE = FOLDER / "beat"


@app.task(name="tick")
def tick(number: int) -> None:
    mark(number)


if os.environ.get("BENCH_BEAT"):
    app.conf.beat_schedule = {
        f"job-{number}": {
            "task": "tick",
            "schedule": timedelta(seconds=interval(number)),
            "args": (number,),
            "last_run_at": datetime.fromtimestamp(first_due(number) - interval(number), UTC),
        }
        for number in range(ALL)
    }


def setup() -> None:
    empty_redis()
    for file in Path(FOLDER).glob("beat*"):
        file.unlink()


def processes() -> dict[str, list[str]]:
    celery = [sys.executable, "-m", "celery", "-A", __name__]
    quiet = ["-l", "ERROR", "-P", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    return {
        "scheduler": [
            "env",
            "BENCH_BEAT=1",
            *celery,
            "beat",
            "-l",
            "ERROR",
            "--pidfile",
            "",
            "-s",
            str(_FILE),
        ],
        "worker": [*celery, "worker", *quiet],
    }
