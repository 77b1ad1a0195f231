"""Ten thousand executions over three instances with ten slots each: none twice, none lost, none left over."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from noonday.cli.benching import filling
from noonday.clock import wall_clock
from noonday.domain.target import PythonTarget
from noonday.store.database import Database
from tests.cluster.cluster import LANES, PREFIX, Cluster
from tests.cluster.node import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(180)]

JOBS, RUNS = 100, 100
PLANNED = """
INSERT INTO executions (id, job_id, cause, scheduled_for, available_at, state, lane, created_at, road)
SELECT gen_random_uuid(), jobs.id, 'manual', now() - n * interval '1 ms', now(), 'queued', 1 + n %% 3,
    now(), 2
FROM jobs, generate_series(1, %s) AS n WHERE jobs.name LIKE 'crowd-%%'
"""
OURS = "FROM executions JOIN jobs ON jobs.id = executions.job_id WHERE jobs.name LIKE 'crowd-%'"


def counted(conn: psycopg.Connection[Any], column: str) -> dict[Any, int]:
    return dict(conn.execute(f"SELECT executions.{column}, count(*) {OURS} GROUP BY 1").fetchall())


def put_on_the_road(cluster: Cluster) -> int:
    """Messages that were ever put on the streams."""
    with cluster.keys() as keys:
        names = [f"{PREFIX}:jobs:{lane}" for lane in LANES]
        return sum(keys.xinfo_stream(name)["entries-added"] for name in names if keys.exists(name))


def test_it_runs_ten_thousand_once_each(cluster: Cluster) -> None:
    cluster.heal()
    marks = cluster.folder / "marks"
    marks.unlink(missing_ok=True)
    leader = cluster.leader()
    for number in range(JOBS):
        body = {
            "name": f"crowd-{number}",
            "target": {"type": "python", "task": "mark"},
            "schedule_type": "manual",
            "overlap": "allow",
            "scheduler_version": 2,
        }
        leader.ask("POST", "/api/v2/jobs", body)
    before = put_on_the_road(cluster)
    with cluster.sql() as conn:
        begun = time.monotonic()
        conn.execute(PLANNED, (RUNS,))
        conn.execute("SELECT pg_notify('noonday', 'plain work')")
        eventually(lambda: counted(conn, "state").get("completed") == JOBS * RUNS, 90, "not all are done")
        took = time.monotonic() - begun
        assert counted(conn, "state") == {"completed": JOBS * RUNS}
        hands = counted(conn, "instance_id")
        tries = dict(
            conn.execute(
                f"SELECT outcome, count(DISTINCT execution_id) FROM attempts "
                f"WHERE execution_id IN (SELECT executions.id {OURS}) GROUP BY 1"
            ).fetchall()
        )
    # A worker that took more than it had slots for may hand some back unbegun; nothing else may happen.
    assert tries.keys() <= {"released"}, tries
    ran = Counter(line.split()[0] for line in marks.read_text().splitlines())
    assert len(ran) == JOBS * RUNS
    assert set(ran.values()) == {1}, "an execution ran twice"
    assert len(hands) == 3, hands
    assert min(hands.values()) >= JOBS * RUNS / 10, f"shared unevenly: {hands}"
    assert put_on_the_road(cluster) - before >= JOBS * RUNS * 0.99, "they did not take the streams"
    eventually(lambda: not cluster.on_the_road(), 15, "messages stay on the streams")
    print(f"{JOBS * RUNS / took:.0f} executions a second: {hands}")


GATHERED = """
SELECT instance_id FROM executions
WHERE state = 'running' AND scheduled_for = %s AND claimed_at < scheduled_for - interval '0.1 s' LIMIT 1
"""
STATES = "SELECT state, count(*) FROM executions WHERE scheduled_for = %s GROUP BY 1"


def test_whoever_has_gathered_a_crowd_may_die(cluster: Cluster) -> None:
    """Before its moment, with a share of it in its hands: nothing is lost, nothing begins early or twice."""
    cluster.heal()
    for node in cluster.nodes:  # one that knows runs to be slow, as they are on a busy machine, gathers none
        node.kill()
        node.start()
    cluster.leader()
    marks = cluster.folder / "marks"
    marks.unlink(missing_ok=True)
    count, moment = 6000, wall_clock() + timedelta(seconds=12)
    kind = filling.Kind(version=2, target=PythonTarget(task="mark"))
    db = Database(cluster.postgres.url)
    try:
        filling.add(db, [filling.once(kind, moment) for _ in range(count)])
    finally:
        db.close_now()
    with cluster.sql() as conn:
        (name,) = eventually(lambda: conn.execute(GATHERED, (moment,)).fetchone(), 30, "nobody gathers")
        cluster.member(name).node.kill()
        done = {"completed": count}
        eventually(lambda: dict(conn.execute(STATES, (moment,)).fetchall()) == done, 60, "not all are done")
    runs = [line.split() for line in marks.read_text().splitlines()]
    assert len({execution for execution, _, _ in runs}) == count
    tries = Counter((execution, attempt) for execution, attempt, _ in runs)
    assert set(tries.values()) == {1}, "an attempt ran twice"
    assert min(float(began) for _, _, began in runs) >= moment.timestamp()
    cluster.heal()
    eventually(lambda: not cluster.on_the_road(), 15, "messages stay on the streams")
