"""RQ with its simple worker, which does not fork for each job; results are kept, as is its default."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from redis import Redis
from rq import Queue

from bench.peers.marks import REDIS, empty_redis, mark


def nothing(key: int = 0, due: float = 0.0) -> None:
    mark(key, due)


reset = empty_redis


def enqueue(count: int, due: float) -> None:
    queue = Queue("bench", connection=Redis.from_url(REDIS))
    for key in range(count):
        if due:
            queue.enqueue_at(datetime.fromtimestamp(due, UTC), nothing, key, due)
        else:
            queue.enqueue(nothing, key)


def worker(processes: int) -> list[list[str]]:
    command = ["-m", "rq.cli", "worker", "bench", "-u", REDIS, "-w", "rq.SimpleWorker", "-q"]
    return [[sys.executable, *command, "--with-scheduler", "-P", "."]] * processes
