"""huey on Redis, with its results."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from huey import RedisHuey

from bench.peers.marks import REDIS, empty_redis, mark

huey = RedisHuey("bench", url=REDIS, utc=True)


@huey.task()
def nothing(key: int = 0, due: float = 0.0) -> int:
    mark(key, due)
    return 1


reset = empty_redis


def enqueue(count: int, due: float) -> None:
    at = datetime.fromtimestamp(due, UTC).replace(tzinfo=None)
    for key in range(count):
        if due:
            nothing.schedule((key, due), eta=at)
        else:
            nothing(key)


def worker(processes: int) -> list[list[str]]:
    kind = "thread" if processes == 1 else "process"
    command = str(Path(sys.executable).parent / "huey_consumer")
    return [[command, f"{__name__}.huey", "-w", str(processes), "-k", kind, "-q", "-C"]]
