"""Roles in processes of their own, many workers under one parent, drain, a hand-over without a late fire."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.crash.processes import Mark, Noonday, World, eventually
from tests.crash.test_kill_nine import EVERY_SECOND, started

pytestmark = pytest.mark.crash

API = ("serve", "--port", "0", "--role", "api")


def instances(front: Noonday) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in front.ask("GET", "/api/v2/scheduler/instances")["instances"]}


def children(parent: Noonday) -> list[int]:
    path = f"/proc/{parent.process.pid}/task/{parent.process.pid}/children"
    with open(path, encoding="ascii") as found:
        return [int(pid) for pid in found.read().split()]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_role_does_its_own_part_and_nothing_else(here: World) -> None:
    front = here.start(*API, SCHEDULER_INSTANCE_ID="front")
    front.add("steady", "nap", **EVERY_SECOND)
    health = front.ask("GET", "/api/v2/scheduler/health")
    assert (health["is_leader"], health["leader"], health["workers_active"]) == (False, None, 0)
    assert front.history("steady") == []  # nobody plans

    planner = here.start("scheduler", SCHEDULER_INSTANCE_ID="planner")
    eventually(lambda: len([row for row in front.history("steady") if row["status"] == "queued"]) >= 3)
    assert here.marks() == []  # nobody claims
    eventually(lambda: front.ask("GET", "/api/v2/scheduler/health")["leader"]["id"] == "planner")

    worker = here.start("worker", "--instance-id", "hands", HOST="0.0.0.0", MAX_WORKERS="3")
    eventually(lambda: len(started(here, "steady")) >= 2)
    found = instances(front)
    assert {name: one["roles"] for name, one in found.items()} == {
        "front": ["api"],
        "planner": ["scheduler"],
        "hands": ["worker"],
    }
    assert {name: one["slots"] for name, one in found.items()} == {"front": 0, "planner": 0, "hands": 3}
    assert (found["front"]["url"], found["hands"]["url"]) == (front.url, None)
    assert f"callbacks go to {front.url}" in worker.lines()
    assert "http" not in planner.lines()
    for one in (worker, planner, front):
        one.send(signal.SIGTERM)
        assert one.wait() == 0, one.lines()


def test_many_workers_under_one_parent(here: World) -> None:
    front = here.start("serve", "--port", "0", "--role", "api,scheduler")
    crew = here.launch("worker", "--processes", "2", "--instance-id", "crew", MAX_WORKERS="1")
    eventually(lambda: {"crew-1", "crew-2"} <= instances(front).keys())
    first = children(crew)
    assert len(first) == 2
    for number in range(2):
        front.add(f"long-{number}", "nap", 2.5, schedule_type="immediate")
    eventually(lambda: len(here.marks()) == 2)
    assert {mark.pid for mark in here.marks()} == set(first)

    os.kill(first[0], signal.SIGKILL)
    eventually(lambda: "starting it anew" in crew.lines())
    eventually(lambda: [mark for mark in here.marks() if (mark.word, mark.attempt) == ("start", 2)])
    eventually(lambda: {one["pid"] for one in instances(front).values()} >= set(children(crew)))
    assert len(children(crew)) == 2

    crew.send(signal.SIGTERM)
    assert crew.wait() == 0, crew.lines()
    assert len([mark for mark in here.marks() if mark.word == "end"]) == 2  # what ran could finish
    assert not any(map(alive, first))
    assert not {"crew-1", "crew-2"} & instances(front).keys()


def test_no_worker_outlives_its_parent(here: World) -> None:
    front = here.start()
    crew = here.launch("worker", "--processes", "2", "--instance-id", "crew")
    eventually(lambda: {"crew-1", "crew-2"} <= instances(front).keys())
    left = children(crew)
    crew.kill()
    eventually(lambda: not any(map(alive, left)), within=20)
    eventually(lambda: not {"crew-1", "crew-2"} & instances(front).keys())  # they ended in order


def test_the_second_signal_ends_all_at_once(here: World) -> None:
    front = here.start("serve", "--port", "0", "--role", "api,scheduler")
    crew = here.launch("worker", "--processes", "2")
    eventually(lambda: len(instances(front)) == 3)
    front.add("deaf", "nap-in-thread", 60, schedule_type="immediate")
    eventually(lambda: started(here, "deaf"))
    left = children(crew)
    crew.send(signal.SIGINT)
    eventually(lambda: '"action": "stop"' in crew.lines())
    crew.send(signal.SIGINT)
    assert crew.wait(15) == 128 + signal.SIGINT
    assert not any(map(alive, left))


def test_one_drains_while_the_other_takes_over(here: World) -> None:
    one = here.start(SCHEDULER_INSTANCE_ID="one")
    two = here.start(SCHEDULER_INSTANCE_ID="two")
    one.add("steady", "nap", **EVERY_SECOND)
    eventually(lambda: len(started(here, "steady")) >= 2)
    answer = two.ask("POST", "/api/v2/scheduler/drain?instance=one")
    assert [each["id"] for each in answer["instances"]] == ["one"]
    eventually(lambda: instances(two)["one"]["state"] == "drained")
    assert one.ask("GET", "/api/v2/scheduler/health")["status"] == "draining"
    assert one.ask("GET", "/health/ready")["status"] == "healthy"
    assert {mark.pid for mark in next_runs(here)} == {two.process.pid}

    one.ask("POST", "/api/v2/scheduler/resume")
    eventually(lambda: instances(two)["one"]["state"] == "running")
    two.ask("POST", "/api/v2/scheduler/drain", {"instance": "two"})
    eventually(lambda: instances(one)["two"]["state"] == "drained")
    assert {mark.pid for mark in next_runs(here)} == {one.process.pid}
    rows = [row for row in one.history("steady") if row["status"] not in ("queued", "running")]
    assert {row["status"] for row in rows} == {"completed"}


def next_runs(here: World) -> list[Mark]:
    seen = len(started(here, "steady"))
    eventually(lambda: len(started(here, "steady")) >= seen + 2)
    return started(here, "steady")[seen:]


def test_another_one_plans_while_the_leader_still_finishes_its_work(here: World) -> None:
    """It resigns first: what runs there for a long time delays no fire."""
    old = here.start(SCHEDULER_INSTANCE_ID="old", SCHEDULER_LEADER_TTL="30s")
    old.add("long", "nap", 12, schedule_type="immediate")
    eventually(lambda: started(here, "long"))
    new = here.start(SCHEDULER_INSTANCE_ID="new", SCHEDULER_LEADER_TTL="30s")
    new.add("steady", "nap", **EVERY_SECOND)
    eventually(lambda: len(started(here, "steady")) >= 1)
    assert new.ask("GET", "/api/v2/scheduler/health")["leader"]["id"] == "old"
    old.send(signal.SIGTERM)
    eventually(lambda: new.ask("GET", "/api/v2/scheduler/health")["is_leader"], within=5)
    assert old.process.poll() is None  # still at its long run
    seen = len(started(here, "steady"))
    eventually(lambda: len(started(here, "steady")) >= seen + 3)
    assert old.wait() == 0, old.lines()
    rows = [row for row in new.history("steady") if row["status"] == "completed"]
    assert max(row["lateness_ms"] for row in rows) < 2000
    due = sorted(row["scheduled_for"] for row in rows)
    assert len(due) == len(set(due))
    assert new.history("long")[0]["status"] == "completed"
