"""What one instance is asked acts on all of them at once; plain SQL acts within the check interval."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.cluster.cluster import CHECK_INTERVAL, Cluster
from tests.cluster.node import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(60)]

AT_ONCE = 1.5  # seconds
EVERY_SECOND = {"schedule_type": "interval", "interval_minutes": 1, "interval_type": "seconds"}


def body(cluster: Cluster, name: str, **fields: Any) -> dict[str, Any]:
    target = {"type": "http", "url": cluster.target.of(name)}
    return {"name": name, "target": target, "scheduler_version": 2, **fields}


def arrivals(cluster: Cluster, name: str, after: float = 0.0) -> list[float]:
    return [one.at for one in cluster.target.arrivals() if one.job == name and one.at > after]


def test_it_obeys_whichever_instance_is_asked(cluster: Cluster) -> None:
    cluster.heal()
    for asked in cluster.nodes:
        name = f"at-once-{asked.name}"
        asked.ask("POST", "/api/v2/jobs", body(cluster, name, schedule_type="immediate"))
        for node in cluster.nodes:
            assert node.ask("GET", f"/api/v2/jobs/{name}")["name"] == name
        eventually(lambda name=name: arrivals(cluster, name), AT_ONCE, f"{name} has not run")  # type: ignore[misc]


def test_it_starts_nothing_after_a_pause_and_goes_on_after_a_resume(cluster: Cluster) -> None:
    cluster.heal()
    one, other, third = cluster.nodes
    one.ask("POST", "/api/v2/jobs", body(cluster, "obedient", **EVERY_SECOND))
    eventually(lambda: len(arrivals(cluster, "obedient")) >= 2, 6)
    eventually(lambda: other.ask("POST", "/api/v2/jobs/obedient/pause"), 5)  # refused while it runs
    paused = time.time()
    assert one.ask("GET", "/api/v2/jobs/obedient")["is_paused"] is True
    time.sleep(2.5)  # two due times pass
    assert arrivals(cluster, "obedient", paused + 0.2) == []
    third.ask("POST", "/api/v2/jobs/obedient/resume")
    resumed = time.time()
    eventually(lambda: arrivals(cluster, "obedient", resumed), 1 + AT_ONCE)
    eventually(lambda: one.ask("DELETE", "/api/v2/jobs/obedient") is None, 5)
    deleted = time.time()
    time.sleep(1.5)
    assert arrivals(cluster, "obedient", deleted + 0.2) == []


def test_it_notices_plain_sql_within_the_check_interval(cluster: Cluster) -> None:
    cluster.heal()
    name = "by-hand"
    target = json.dumps({"type": "http", "url": cluster.target.of(name), "method": "POST"})
    with cluster.sql() as conn:
        conn.execute(
            "INSERT INTO jobs (name, target, schedule_type, interval_minutes, interval_type, "
            "scheduler_version) VALUES (%s, %s, 'interval', 1, 'seconds', 2)",
            (name, target),
        )
        eventually(lambda: arrivals(cluster, name), CHECK_INTERVAL + 1 + AT_ONCE, "the new row")
        conn.execute("UPDATE jobs SET is_paused = true WHERE name = %s", (name,))
        changed = time.time()
        time.sleep(CHECK_INTERVAL + 1.5)
        assert arrivals(cluster, name, changed + CHECK_INTERVAL) == []
        conn.execute("UPDATE jobs SET is_paused = false WHERE name = %s", (name,))
        changed = time.time()
        eventually(lambda: arrivals(cluster, name, changed), CHECK_INTERVAL + 1 + AT_ONCE)
        conn.execute("DELETE FROM jobs WHERE name = %s", (name,))
