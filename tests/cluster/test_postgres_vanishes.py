"""PostgreSQL crashes or is out of reach of one instance: nothing starts unseen, nothing is lost."""

from __future__ import annotations

import pytest

from tests.cluster import faults
from tests.cluster.cluster import Cluster
from tests.cluster.trial import trial

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(120)]


def test_it_goes_on_when_the_leader_alone_does_not_reach_the_database(cluster: Cluster) -> None:
    with trial(cluster, "cut-postgres") as run:
        run.faults += faults.cut_from_postgres(cluster)


def test_it_goes_on_by_itself_after_a_crash_of_the_database(cluster: Cluster) -> None:
    with trial(cluster, "crashed-postgres") as run:
        run.faults += faults.crash_postgres(cluster)
