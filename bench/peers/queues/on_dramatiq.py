"""Dramatiq on Redis, eight threads in each process; results in Redis if BENCH_RESULTS says so."""

from __future__ import annotations

import os
import sys
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers.marks import REDIS, empty_redis, mark

_KEPT = bool(os.environ.get("BENCH_RESULTS"))
_broker = RedisBroker(url=REDIS)
if _KEPT:
    _broker.add_middleware(Results(backend=RedisBackend(url=REDIS)))
dramatiq.set_broker(_broker)


def _nothing(key: int = 0, due: float = 0.0) -> int | None:
    mark(key, due)
    return 1 if _KEPT else None


nothing = dramatiq.actor(_nothing, store_results=True) if _KEPT else dramatiq.actor(_nothing)

reset = empty_redis


def enqueue(count: int, due: float) -> None:
    for key in range(count):
        if due:
            delay = max(0, int((due - time.time()) * 1000))
            nothing.send_with_options(args=(key, due), delay=delay)
        else:
            nothing.send(key)


def worker(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "dramatiq", __name__, "-p", str(processes), "-t", "8"]]
