"""kill -9 in the middle of runs, start again: nothing lost or doubled, orphans settled, reasons kept."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.crash.processes import Mark, Noonday, World, eventually, world

pytestmark = pytest.mark.crash

FINAL = {"completed", "failed", "cancelled", "skipped"}
EVERY_SECOND = {"schedule_type": "interval", "interval_minutes": 1, "interval_type": "seconds"}


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def started(world: World, job: str) -> list[Mark]:
    return [mark for mark in world.marks() if mark.word == "start" and mark.job == job]


def started_beyond(world: World, job: str, number: int) -> bool:
    return len(started(world, job)) > number


def settled_until(noonday: Noonday, job: str, moment: datetime) -> list[dict[str, Any]] | None:
    rows = [row for row in noonday.history(job) if instant(row["scheduled_for"]) <= moment]
    return rows if rows and all(row["status"] in FINAL for row in rows) else None


def test_it_loses_and_doubles_nothing_when_it_is_killed_in_the_middle(here: World) -> None:
    first = here.start()
    for number in range(4):
        first.add(f"busy-{number}", "nap", 0.3, **EVERY_SECOND, misfire_grace_seconds=300, coalesce=False)
    first.add("long", "nap", 2.0, schedule_type="immediate")
    eventually(lambda: started(here, "long") and len(started(here, "busy-0")) >= 2)
    first.kill()
    time.sleep(2.2)  # due times pass while nobody is there
    second = here.start()
    eventually(lambda: len(started(here, "busy-0")) >= 8)
    now = datetime.now(UTC)

    names = [*(f"busy-{number}" for number in range(4)), "long"]
    ran = Counter((mark.execution, mark.attempt) for mark in here.marks() if mark.word == "start")
    assert set(ran.values()) == {1}, "an attempt ran twice"
    ended = {mark.execution for mark in here.marks() if mark.word == "end"}
    for name in names[:-1]:
        rows = eventually(partial(settled_until, second, name, now))
        slots = [row["scheduled_for"] for row in rows]
        assert len(slots) == len(set(slots))
        accounted = sum(row["skipped_count"] or 1 for row in rows)
        first_due, last_due = instant(slots[0]), instant(rows[-1]["through_at"] or slots[-1])
        assert accounted == round((last_due - first_due).total_seconds()) + 1, "a due time is missing"
        for row in rows:
            if row["status"] == "completed":
                assert row["id"] in ended | {m.execution for m in here.marks() if m.word == "end"}
            else:
                assert row["skip_reason"], row
            if row["attempt"] > 1:
                assert row["losses"] == row["attempt"] - 1

    def orphan() -> dict[str, Any] | None:
        [row] = second.history("long")
        return row if row["status"] == "completed" else None

    row = eventually(orphan)
    assert (row["attempt"], row["losses"]) == (2, 1)
    attempts = second.ask("GET", f"/api/v2/executions/{row['id']}")["attempts"]
    assert [one["outcome"] for one in attempts] == ["lost", "completed"]
    assert "ran out" in attempts[0]["error_message"]
    known = {entry["id"] for name in names for entry in second.history(name)}
    assert {mark.execution for mark in here.marks()} <= known, "something ran that no row knows"


def test_it_takes_back_its_own_work_at_once_when_a_person_gave_it_an_id(here: World) -> None:
    long_lease = {"SCHEDULER_LEASE_TTL": "10m", "SCHEDULER_INSTANCE_ID": "berlin-1"}
    first = here.start(**long_lease)
    first.add("long", "nap", 1.0, schedule_type="immediate")
    eventually(lambda: started(here, "long"))
    first.kill()
    second = here.start(**long_lease)

    def done() -> dict[str, Any] | None:
        [row] = second.history("long")
        return row if row["status"] == "completed" else None

    row = eventually(done)
    assert (row["attempt"], row["losses"], row["instance_id"]) == (2, 1, "berlin-1")


def test_it_fires_on_the_dot(here: World) -> None:
    noonday = here.start()
    due = datetime.now(UTC) + timedelta(seconds=2)
    noonday.add("dot", "nap", schedule_type="once", run_at=due.isoformat())

    def done() -> dict[str, Any] | None:
        rows = noonday.history("dot")
        return rows[0] if rows and rows[0]["status"] == "completed" else None

    row = eventually(done)
    late = instant(row["started_at"]) - due
    assert late >= timedelta(), "early"


def test_it_runs_an_overdue_job_once_and_says_what_it_skipped_after_a_long_stop(here: World) -> None:
    short = {"SCHEDULER_LOOKAHEAD": "500ms"}  # what is planned before the stop is run after it
    first = here.start(**short)
    first.add("often", "nap", **EVERY_SECOND, misfire_grace_seconds=300)
    eventually(lambda: started(here, "often"))
    first.kill()
    time.sleep(7)  # up to two seconds of it are planned already, and one fire is the newest, which runs
    second = here.start(**short)
    before = len(started(here, "often"))
    eventually(lambda: len(started(here, "often")) > before + 1)
    # What was planned before may run before the planner comes to what was not.
    lapses = eventually(lambda: [row for row in second.history("often") if row["skip_reason"] == "coalesced"])
    assert sum(row["skipped_count"] for row in lapses) >= 2
    assert all(row["detail"] for row in lapses)


def test_it_starts_twice_at_once_on_an_empty_database(here: World) -> None:
    both = [here.launch(), here.launch()]
    for one in both:
        one.wait_until_ready()
    both[0].add("shared", "nap", schedule_type="immediate")
    eventually(lambda: any(mark.word == "end" for mark in here.marks()))
    assert len(here.marks()) == 2
    for one in both:
        assert one.ask("GET", "/health/ready")["status"] == "healthy"


def test_it_goes_on_by_itself_when_the_database_cuts_its_connections(
    empty_postgres_url: str, tmp_path: Path
) -> None:
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with world(empty_postgres_url, tmp_path) as here:
        noonday = here.start()
        noonday.add("steady", "nap", 0.1, **EVERY_SECOND, coalesce=False)
        for _ in range(3):
            seen = len(started(here, "steady"))
            eventually(partial(started_beyond, here, "steady", seen + 1))
            with psycopg.connect(empty_postgres_url, autocommit=True) as conn:
                conn.execute(cut)
        seen = len(started(here, "steady"))
        eventually(partial(started_beyond, here, "steady", seen + 1))
        rows = eventually(partial(settled_until, noonday, "steady", datetime.now(UTC) - timedelta(seconds=1)))
        slots = [instant(row["scheduled_for"]) for row in rows]
        assert all(later - one == timedelta(seconds=1) for one, later in pairwise(slots)), (
            "a due time is missing"
        )
        assert {row["status"] for row in rows} <= {"completed", "skipped"}
        ran = Counter((mark.execution, mark.attempt) for mark in here.marks() if mark.word == "start")
        assert set(ran.values()) == {1}
        assert noonday.lines().count('"level": "error"') < 40, "an outage floods the log"
