"""Noonday as a queue. BENCH_KIND says what waits in it.

runs: executions of a few jobs, in the queue already, as the tasks of every other queue here;
plan: the same number of fires, none of them planned yet; once: as many jobs that run once each.
"""

from __future__ import annotations

import os
import time

from bench.peers import ours
from noonday.cli.benching import filling

reset = ours.fresh
_KIND = os.environ.get("BENCH_KIND", "runs")
_JOBS = 10
_FIRES_OF_EACH = 20


def enqueue(count: int, due: float) -> None:
    if due or _KIND == "once":
        at = ours.at(due or time.time())
        ours.store(filling.once(ours.KIND, at) for _ in range(count))
    elif _KIND == "plan":
        ours.store(filling.missed(ours.KIND, ours.at(time.time()), count, _FIRES_OF_EACH))
    else:
        ours.store(*filling.waiting(ours.KIND, count, _JOBS))


def worker(processes: int) -> list[list[str]]:
    return [ours.command()] * processes
