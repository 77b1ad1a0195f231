"""One cluster for all of its tests: starting three instances takes longer than most faults."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.cluster.cluster import Cluster, running


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    made = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(made, Cluster):
        report.sections.append(("logs of the instances", made.told()))
    return report
