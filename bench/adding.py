"""Adding schedules: one after the other and many at once, ours through the HTTP API, others in process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2

from bench.choice import Choice
from bench.figures import Subject, Values
from bench.peers import field, processes
from bench.peers.stage import NoResult, Stage
from noonday.api.dialects.registry import RegisterAllBody
from tests.servers import free_port

SECTION = "adding"
_AT_ONCE: int = RegisterAllBody.model_json_schema()["properties"]["jobs"]["maxItems"]
_MOST_OF_OTHERS = 2000
_PATIENCE = 30.0


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    many = f"{choice.added_at_once:,} at once"
    for peer in field.OUR_CLOCKS:
        singly = partial(_ours, stage, peer, choice.added, _one_by_one)
        yield Subject.of(SECTION, "one by one", peer, singly)
        yield Subject.of(
            SECTION, many, peer, partial(_ours, stage, peer, choice.added_at_once, _many_at_once)
        )
    for peer in field.chosen(field.CLOCKS, choice.families & {"apscheduler"}):
        yield Subject.of(
            SECTION, "one by one", peer, partial(_theirs, stage, peer, min(choice.added, _MOST_OF_OTHERS))
        )


def _theirs(stage: Stage, peer: field.Peer, count: int) -> Values:
    later = {"BENCH_BASE": repr(time.time() + 3600)}
    seconds = stage.call(peer, stage.surroundings(peer, later), "add", count)
    return {"per_second": count / seconds, "took_s": seconds}


def _ours(stage: Stage, peer: field.Peer, count: int, add: Any) -> Values:
    around = stage.surroundings(peer)
    stage.call(peer, around, "ours.fresh")
    with _served(stage, peer, around) as client:
        start = time.perf_counter()
        add(client, count)
        spent = time.perf_counter() - start
        there = client.get("/api/v2/jobs", params={"limit": 1}).json()["total"]
    if there != count:
        raise NoResult(f"{there:,} of {count:,} jobs are there")
    return {"per_second": count / spent, "took_s": spent}


@contextmanager
def _served(stage: Stage, peer: field.Peer, around: dict[str, str]) -> Iterator[httpx2.Client]:
    port = free_port()
    command = stage.call(peer, around, "ours.command", "api,scheduler", "--port", str(port))
    with (
        processes.started([command], around) as running,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client,
    ):
        until = time.monotonic() + _PATIENCE
        while not _alive(client):
            if processes.ended(running) or time.monotonic() > until:
                raise NoResult("its API did not answer")
            time.sleep(0.1)
        yield client


def _alive(client: httpx2.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx2.HTTPError:
        return False


def _one_by_one(client: httpx2.Client, count: int) -> None:
    for number in range(count):
        body = {
            "name": f"added-{number}",
            "schedule_type": "cron",
            "cron_expression": f"{number % 60} {number // 60 % 24} * * *",
            "target": {"type": "python", "task": "nothing"},
        }
        _accepted(client.post("/api/v2/jobs", json=body))


def _many_at_once(client: httpx2.Client, count: int) -> None:
    for first in range(0, count, _AT_ONCE):
        jobs = [
            {
                "name": f"declared-{number}",
                "cronExpression": f"{number % 60} {number // 60 % 24} * * *",
                "endpoint": "/jobs/nothing",
            }
            for number in range(first, min(count, first + _AT_ONCE))
        ]
        _accepted(client.post("/api/jobs/register/all", json={"service": "bench", "jobs": jobs}))


def _accepted(answer: httpx2.Response) -> None:
    if answer.status_code not in {200, 201}:
        raise NoResult(f"{answer.status_code}: {answer.text[:200]}")
