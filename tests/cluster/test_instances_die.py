"""Instances are killed, paused and restarted: no fire is lost or doubled, and each comes within its bound."""

from __future__ import annotations

import pytest

from tests.cluster import faults
from tests.cluster.cluster import Cluster
from tests.cluster.load import USUAL, Kind
from tests.cluster.trial import trial

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(120)]

LONG = (*USUAL, Kind(name="long", number=3, version=2, every=3, delay=2.5))


def test_it_goes_on_when_the_leader_is_killed(cluster: Cluster) -> None:
    with trial(cluster, "killed-leader") as run:
        run.faults += faults.kill_the_leader(cluster)


def test_it_lets_a_leader_that_slept_through_its_term_do_no_harm(cluster: Cluster) -> None:
    with trial(cluster, "paused-leader", LONG) as run:
        run.faults += faults.pause_the_leader(cluster)
    assert run.outcomes("lost"), "nothing was in the hands of the one that slept"


def test_it_runs_again_what_died_with_its_worker(cluster: Cluster) -> None:
    with trial(cluster, "killed-worker", LONG) as run:
        run.faults += faults.kill_a_worker(cluster)
    assert run.outcomes("lost"), "nothing was in the hands of the one that was killed"


def test_it_makes_up_for_what_was_due_while_nobody_was_there(cluster: Cluster) -> None:
    with trial(cluster, "killed-all", LONG) as run:
        run.faults += faults.kill_all(cluster)
    assert run.outcomes("lost")
    [fault] = run.faults
    meanwhile = [row for row in run.judged().rows if fault.began < row.due < fault.ended]
    # What was planned before waits in its row, what was not is a lapse of the first plan after.
    assert all(row.tries or row.skip_reason for row in meanwhile)
    assert any(row.tries for row in meanwhile), "nothing was made up for"


def test_it_is_never_late_in_a_rolling_restart(cluster: Cluster) -> None:
    with trial(cluster, "rolling") as run:
        run.faults += faults.restart_one_by_one(cluster)
    report = run.report
    assert report is not None
    figures = report.figures["rolling restart"]
    assert max(figures.lateness) <= faults.HANDOVER
    assert not figures.skipped
    assert not any(figures.redelivered for figures in report.figures.values())
