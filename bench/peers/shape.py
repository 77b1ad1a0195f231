"""The shape of a run of schedules, told to every process by its surroundings.

even: schedules whose due moments lie evenly, `RATE` a second; burst: all due at `BASE`;
canary: one is due at `BASE`, all others half an hour later; asleep: all of them.
Beside those that fire, `CROWD` further ones sleep.
"""

from __future__ import annotations

import math
import os
import time

from bench.peers.marks import mark

MODE = os.environ.get("BENCH_MODE", "even")
SCHEDULES = int(os.environ.get("BENCH_SCHEDULES", "1000"))
CROWD = int(os.environ.get("BENCH_CROWD", "0"))
RATE = float(os.environ.get("BENCH_RATE", "200"))
BASE = float(os.environ.get("BENCH_BASE", "0"))
INTERVAL = SCHEDULES / RATE if MODE == "even" else 3600.0
ALL = SCHEDULES + CROWD
_LATER = 1800.0


def first_due(number: int) -> float:
    if number >= SCHEDULES or MODE == "asleep":
        return BASE + _LATER + number * 0.01
    if MODE == "even":
        return BASE + number / RATE
    if MODE == "burst" or number == 0:
        return BASE
    return BASE + _LATER + number * 0.01


def interval(number: int) -> float:
    """Whole seconds, because some know no others."""
    return INTERVAL if number < SCHEDULES else 3600.0


def fire(number: int) -> None:
    """For schedules that keep to their grid: the last moment of it is the one that was due."""
    first, every = first_due(number), interval(number)
    mark(number, first + math.floor((time.time() - first) / every) * every)
