"""Redis forgets, restarts, stays away or is out of reach of one instance: a delay and never a loss."""

from __future__ import annotations

import time

import pytest

from noonday.engine.slots import LONGEST_WAIT
from tests.cluster import faults
from tests.cluster.cluster import Cluster
from tests.cluster.node import eventually
from tests.cluster.trial import Trial, trial

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(120)]


def arrived(run: Trial, began: float, ended: float) -> int:
    """How many fires of version 2 came in this span."""
    return sum("streams" in one.job and began < one.at < ended for one in run.judged().arrivals)


def wait_for_a_full_road(run: Trial) -> None:
    """More than the workers can take at once: what waits is on the streams, and nowhere else but in rows.

    A worker that knows its runs to be short takes many of these too, and hands them back after a second."""
    due = run.load.burst(150)
    run.faults.append(faults.moment("more work than slots", due, faults.REDIS_BACK))
    time.sleep(max(0.0, due - time.time()))
    eventually(lambda: run.cluster.unread("normal") >= 20, LONGEST_WAIT + 1.0, "nothing waits on the road")


def test_it_puts_back_what_a_flush_took_away(cluster: Cluster) -> None:
    with trial(cluster, "flushed") as run:
        wait_for_a_full_road(run)
        run.faults += faults.flush_redis(cluster)
        time.sleep(0.7)  # at another point of the second
        run.faults += faults.flush_redis(cluster)


def test_it_gets_over_a_restart_of_redis_with_and_without_its_data(cluster: Cluster) -> None:
    with trial(cluster, "restarted") as run:
        wait_for_a_full_road(run)
        run.faults += faults.restart_redis(cluster)
        wait_for_a_full_road(run)
        run.faults += faults.wipe_redis(cluster)


def test_it_goes_on_over_the_database_while_redis_is_down(cluster: Cluster) -> None:
    before = [len(node.lines()) for node in cluster.nodes]
    with trial(cluster, "away") as run:
        run.faults += faults.redis_away(cluster)
        said = [len(node.lines()) - lines for node, lines in zip(cluster.nodes, before, strict=True)]
    down, back = (fault.began for fault in run.faults)
    assert arrived(run, down + 4, back) >= 3 * (back - down - 4), "fires of version 2 waited for Redis"
    assert max(said) <= 2 * (back - down) + 20, f"log lines of each instance: {said}"


def test_it_goes_on_when_the_leader_alone_does_not_reach_redis(cluster: Cluster) -> None:
    with trial(cluster, "cut-redis") as run:
        run.faults += faults.cut_from_redis(cluster)
