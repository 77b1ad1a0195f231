"""A crowd at the door while jobs keep the cores busy: every call is answered, every promise is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.processes import world
from tests.hostile.load import TRIVIAL, Report, loaded


@pytest.mark.parametrize("empty_url", ["sqlite", "postgres"], indirect=True)
def test_no_call_and_no_promise_is_lost(empty_url: str, tmp_path: Path) -> None:
    with world(empty_url, tmp_path) as here:
        report = loaded(here, clients=12, seconds=1.5)
    assert not report.lost
    assert not report.refused
    assert set(report.seconds) == {"create", TRIVIAL, "read", "force-run", "list"}
    assert len(report.jobs) == len(report.seconds["create"]) >= 12
    assert len(report.executions) == len(report.seconds["force-run"])


def test_the_table_tells_who_waits_how_long() -> None:
    report = Report()
    report.seconds["create"] = [0.002] * 98 + [0.01, 0.5]
    report.seconds[TRIVIAL] = [0.001] * 100
    report.missing.append("/api/v2/jobs/x: 404")
    lines = report.table().splitlines()
    assert lines[1].split() == ["create", "100", "2.0", "10.0", "10.0"]
    assert "missing 1" in lines[-1]
