"""Runs one peer at a time: fill it, start it, watch the marks of its tasks, end it, and read them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers import marks, processes
from bench.peers.field import Peer
from bench.peers.stage import NoResult, Stage

Values = dict[str, float]
_QUIET = 20.0  # seconds without a mark after which nothing more is awaited
_WARM = 4.0  # seconds that workers may take to be ready
_LOOK = 0.02
# In the words of the index, without which SQLite would look at the whole history.
_OPEN = "select 1 from executions where state = 'pending' or state = 'queued' or state = 'running' limit 1"
_WHOLE = {"BENCH_ROLES": "api,scheduler,worker"}  # of ours: an instance as it is by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Schedules that fall due evenly, `rate` of them a second, for so many seconds."""

    rate: float
    seconds: float
    crowd: int = 0  # further ones that sleep
    lead: float = 15.0  # seconds in which all of them are stored and the process started


def drain(stage: Stage, peer: Peer, count: int, workers: int, limit: float = 120.0) -> Values:
    """From the first start to the last: neither the filling nor the start of the process counts."""
    around = stage.surroundings(peer)
    stage.call(peer, around, "reset")
    began = time.perf_counter()
    stage.call(peer, around, "enqueue", count, 0.0)
    filled = time.perf_counter() - began
    marks.clear(stage.folder)
    with processes.started(stage.commands(peer, around, "worker", workers), around) as running:
        _await(stage.folder, 1, limit, running)
        before, cpu = marks.count(stage.folder), processes.cpu(running)
        _await(stage.folder, count, limit, running)
        durable = _all_durable(stage, peer, limit) if peer.ours else None
        cpu = processes.cpu(running) - cpu
        memory = processes.megabytes(running)
    seen = marks.read(stage.folder)
    if len(seen) < count:
        raise NoResult(f"{len(seen):,} of {count:,} tasks ran within {limit:g} s")
    spent = seen[-1].started - seen[0].started
    return {
        "per_second": (len(seen) - 1) / spent,
        **({} if durable is None else {"durable_per_second": len(seen) / (durable - seen[0].started)}),
        "cpu_us": cpu / max(1, count - before) * 1e6,
        "memory_mb": memory,
        "enqueued_per_second": count / filled,
    }


def _all_durable(stage: Stage, peer: Peer, limit: float) -> float:
    """When the last end of ours was in its history."""
    until = time.time() + limit
    with stage.history(peer) as ask:
        while ask(_OPEN):
            if time.time() > until:
                raise NoResult(f"not every end was durable within {limit:g} s")
            time.sleep(_LOOK)
    return time.time()


def burst(stage: Stage, peer: Peer, count: int, more: Mapping[str, str]) -> Values:
    """From one due moment of all until the last has started; the worker waits for it already."""
    around = stage.surroundings(peer, more)
    ahead = 15 + count / peer.adds_a_second
    stage.call(peer, around, "reset")
    marks.clear(stage.folder)
    with processes.started(stage.commands(peer, around, "worker", 1), around) as running:
        time.sleep(_WARM)
        due = float(int(time.time() + ahead) + 1)  # some know only whole seconds
        stage.call(peer, around, "enqueue", count, due)
        if time.time() > due:
            raise NoResult(f"to add {count:,} tasks took longer than {ahead:g} s")
        return _last_started(stage, count, due, running)


def burst_of_schedules(stage: Stage, peer: Peer, count: int, lead: float, crowd: int = 0) -> Values:
    """The same with schedules that are all due at one moment."""
    commands = _prepared(stage, peer, crowd)
    base = float(int(time.time() + lead) + 1)
    around = stage.surroundings(peer, _shape("burst", base, schedules=count, crowd=crowd))
    _set_up(stage, peer, around, base)
    with processes.started(commands, around) as running:
        return _last_started(stage, count, base, running)


def _last_started(stage: Stage, count: int, due: float, running: processes.Running) -> Values:
    _await(stage.folder, count, due - time.time() + 60, running)
    late = sorted(one.started - due for one in marks.read(stage.folder))
    if len(late) < count:
        raise NoResult(f"{len(late):,} of {count:,} ran within 60 s")
    return {
        "last_started_s": late[-1],
        "first_started_s": late[0],
        "early": float(sum(one < 0 for one in late)),
        "memory_mb": processes.megabytes(running),
    }


def fires(stage: Stage, peer: Peer, pace: Pace) -> Values:
    """How late each fire was, seen through a window that begins two seconds after the first."""
    commands = _prepared(stage, peer, pace.crowd)
    base = float(int(time.time() + pace.lead) + 1)
    shape = _shape("even", base, schedules=int(pace.rate), crowd=pace.crowd, rate=pace.rate)
    around = stage.surroundings(peer, shape)
    _set_up(stage, peer, around, base)
    since, until = base + 2, base + 2 + pace.seconds
    with processes.started(commands, around) as running:
        time.sleep(max(0.0, since - time.time()))
        cpu = processes.cpu(running)
        time.sleep(max(0.0, until - time.time()))
        cpu = processes.cpu(running) - cpu
        time.sleep(2)  # those that are late
        memory = processes.megabytes(running)
        if processes.ended(running):
            raise NoResult("a process of it ended")
    late = sorted(_lateness(peer, marks.read(stage.folder), since, until, 1.0))
    if not late:
        raise NoResult("nothing fired")
    return {
        "p50_ms": late[len(late) // 2] * 1000,
        "p99_ms": late[int(len(late) * 0.99)] * 1000,
        "max_ms": late[-1] * 1000,
        "fired": len(late) / (pace.rate * pace.seconds),
        "early": float(sum(one < 0 for one in late)),
        "cpu_share": cpu / pace.seconds,
        "memory_mb": memory,
    }


def first_fire(stage: Stage, peer: Peer, schedules: int) -> Values:
    """From the start of the process to the first fire of the one schedule that is due among many."""
    crowd = schedules - 1
    around = stage.surroundings(peer, _shape("canary", time.time() - 1, schedules=1, crowd=crowd) | _WHOLE)
    stage.call(peer, around, "setup")
    commands = stage.commands(peer, around, "processes")
    marks.clear(stage.folder)
    began = time.time()
    with processes.started(commands, around) as running:
        _await(stage.folder, 1, 120, running)
        seen = marks.read(stage.folder)
        if not seen:
            raise NoResult("the one that was due did not fire within 120 s")
        time.sleep(2)
        return {"first_fire_s": seen[0].started - began, "memory_mb": processes.megabytes(running)}


def idle(stage: Stage, peer: Peer, schedules: int, seconds: float) -> Values:
    """The share of one processor that it takes while nothing is due."""
    around = stage.surroundings(peer, _shape("asleep", time.time(), schedules=schedules) | _WHOLE)
    stage.call(peer, around, "setup")
    with processes.started(stage.commands(peer, around, "processes"), around) as running:
        time.sleep(10)
        if processes.ended(running):
            raise NoResult("a process of it ended")
        cpu = processes.cpu(running)
        time.sleep(seconds)
        cpu = processes.cpu(running) - cpu
        return {"cpu_share": cpu / seconds, "memory_mb": processes.megabytes(running)}


def _shape(mode: str, base: float, *, schedules: int, crowd: int = 0, rate: float = 200.0) -> dict[str, str]:
    return {
        "BENCH_MODE": mode,
        "BENCH_BASE": repr(base),
        "BENCH_SCHEDULES": str(schedules),
        "BENCH_CROWD": str(crowd),
        "BENCH_RATE": repr(rate),
    }


def _prepared(stage: Stage, peer: Peer, crowd: int) -> list[list[str]]:
    """What need not be done between the choice of the first due moment and that moment."""
    around = stage.surroundings(peer, {"BENCH_CROWD": str(crowd)})
    if peer.ours:
        stage.call(peer, around, "ours.prepare")
    return stage.commands(peer, around, "processes")


def _set_up(stage: Stage, peer: Peer, around: Mapping[str, str], base: float) -> None:
    stage.call(peer, around, "setup")
    marks.clear(stage.folder)
    late = time.time() - (base - _WARM)
    if late > 0:
        raise NoResult(f"its schedules were stored {late:.1f} s too late")


def _lateness(
    peer: Peer, seen: Sequence[marks.Mark], since: float, until: float, interval: float
) -> Iterator[float]:
    if peer.on_a_grid:
        # Ours says which moment it was meant for; of the others the first fire for a moment counts.
        fired = seen if peer.ours else {(one.key, one.due): one for one in reversed(seen)}.values()
        yield from (one.started - one.due for one in fired if since <= one.due < until)
        return
    before: dict[int, float] = {}
    for one in seen:  # counted from the fire before
        if since <= one.started < until and one.key in before:
            yield one.started - before[one.key] - interval
        before[one.key] = one.started


def _await(folder: Path, count: int, limit: float, running: processes.Running) -> None:
    began = last_change = time.monotonic()
    last = 0
    while (now := time.monotonic()) - began < limit:
        found = marks.count(folder)
        if found >= count:
            return
        if found != last:
            last, last_change = found, now
        elif last and now - last_change > _QUIET:
            return
        if not found and processes.ended(running):
            raise NoResult("a process of it ended before anything ran")
        time.sleep(_LOOK)
