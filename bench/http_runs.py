"""Runs that call a URL, through the whole scheduler, beside the HTTP client by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, LiteralString

from bench import http_targets, limits
from bench.choice import Choice
from bench.figures import Subject, Values
from bench.peers import field, processes
from bench.peers.stage import NoResult, Stage

SECTION = "http"
_LIMIT = 120.0
_DONE: Final = """select count(*), extract(epoch from max(completed_at) - min(started_at))::float8
    from executions where state = 'completed'"""


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    case = f"{choice.calls:,} calls on loopback"
    for peer in field.OUR_QUEUES:
        if "BENCH_SQLITE" not in peer.settings:
            take = partial(_ours, stage, peer, choice.calls)
            yield Subject.of(SECTION, case, peer, take)
    alone = partial(_alone, choice.calls)
    yield Subject(section=SECTION, case=case, name="noonday, the target alone", role="ours", take=alone)
    yield Subject(
        section=SECTION,
        case=case,
        name="limit, aiohttp's client",
        role="limit",
        take=partial(limits.client, choice.calls),
    )


def _alone(calls: int) -> Values:
    """Without the scheduler around it: what is left of the client's own rate."""
    rate, cpu = http_targets.ours(calls)
    return {"per_second": rate, "cpu_us": cpu}


def _ours(stage: Stage, peer: field.Peer, calls: int) -> Values:
    """From the first start to the last end, as the history has them."""
    around = stage.surroundings(peer)
    together, hosts = str(http_targets.TOGETHER), http_targets.HOSTS
    with http_targets.server() as port:
        stage.call(peer, around, "reset")
        urls = [f"http://127.0.0.{1 + host}:{port}/jobs/daily" for host in range(hosts)]
        stage.call(peer, around, "ours.store_calls", calls, urls)
        command = stage.call(peer, around, "ours.command", "scheduler,worker", "--workers", together)
        with processes.started([command], around) as running, stage.history(peer) as ask:
            began, _, cpu = _until(ask, running, 1)
            done, spent, end = _until(ask, running, calls // hosts * hosts)
            memory = processes.megabytes(running)
    if spent is None or done < calls // hosts * hosts:
        raise NoResult(f"{done:,} of {calls:,} calls were made within {_LIMIT:g} s")
    return {
        "per_second": done / spent,
        "cpu_us": (end - cpu) / max(1, done - began) * 1e6,
        "memory_mb": memory,
    }


def _until(
    ask: Callable[[LiteralString], Any], running: processes.Running, count: int
) -> tuple[int, float | None, float]:
    """How many are done, how long that has taken, and the processor's time until then."""
    until = time.monotonic() + _LIMIT
    while True:
        done, spent = ask(_DONE)
        if done >= count or time.monotonic() > until or processes.ended(running):
            return done, spent, processes.cpu(running)
        time.sleep(0.05)
