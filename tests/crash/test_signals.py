"""SIGTERM ends in order with exit 0, the second signal at once; a process that was stopped does no harm."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any

import pytest

from tests.crash.processes import Noonday, World, eventually
from tests.crash.test_kill_nine import EVERY_SECOND, started

pytestmark = pytest.mark.crash


def test_it_finishes_running_work_and_exits_with_zero(here: World) -> None:
    first = here.start()
    first.add("short", "nap", 1.5, schedule_type="immediate")
    eventually(lambda: started(here, "short"))
    first.send(signal.SIGTERM)
    assert first.wait() == 0, first.lines()
    assert [mark.word for mark in here.marks()] == ["start", "end"]
    second = here.start()
    [row] = second.history("short")
    assert (row["status"], row["attempt"]) == ("completed", 1)
    health = second.ask("GET", "/api/v2/scheduler/health")
    assert health["status"] == "healthy"


def test_it_is_not_ready_while_it_stops_and_claims_no_more(here: World) -> None:
    noonday = here.start()
    noonday.add("long", "nap", 4, schedule_type="immediate")
    eventually(lambda: started(here, "long"))
    noonday.send(signal.SIGINT)

    def refuses() -> bool:
        try:
            noonday.ask("GET", "/health/ready")
        except AssertionError as exc:
            return "503" in str(exc)
        return False

    eventually(refuses)
    noonday.add("late", "nap", schedule_type="immediate")
    assert noonday.wait() == 0, noonday.lines()
    assert started(here, "late") == []
    again = here.start()
    eventually(lambda: started(here, "late"))
    assert again.history("long")[0]["status"] == "completed"


def test_it_hands_back_what_does_not_finish_within_the_grace(here: World) -> None:
    first = here.start(SHUTDOWN_GRACE="500ms")
    first.add("long", "nap", 2.5, schedule_type="immediate")
    eventually(lambda: started(here, "long"))
    begun = time.monotonic()
    first.send(signal.SIGTERM)
    assert first.wait() == 0, first.lines()
    assert time.monotonic() - begun < 15
    second = here.start()

    def done() -> dict[str, Any] | None:
        [row] = second.history("long")
        return row if row["status"] == "completed" else None

    row = eventually(done)
    attempts = second.ask("GET", f"/api/v2/executions/{row['id']}")["attempts"]
    assert [one["outcome"] for one in attempts] == ["released", "completed"]
    assert (row["losses"], row["retry_attempt"]) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_on_the_second_signal(here: World, number: signal.Signals) -> None:
    noonday = here.start()
    noonday.add("deaf", "nap-in-thread", 60, schedule_type="immediate")
    eventually(lambda: started(here, "deaf"))
    noonday.send(number)
    eventually(lambda: '"action": "stop"' in noonday.lines())
    assert noonday.process.poll() is None
    begun = time.monotonic()
    noonday.send(number)
    assert noonday.wait() == 128 + number
    assert time.monotonic() - begun < 5


def stop_between_writes(here: World, zombie: Noonday) -> None:
    """On SQLite nobody else writes while a stopped process is in the middle of a transaction."""
    with write_lock(here.url) if here.url.startswith("sqlite") else nullcontext():
        zombie.send(signal.SIGSTOP)
        _, status = os.waitpid(zombie.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), zombie.lines()


@contextmanager
def write_lock(url: str) -> Iterator[None]:
    with closing(sqlite3.connect(url.partition("///")[2], timeout=20, isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        yield
        conn.execute("ROLLBACK")


def test_it_lets_a_process_stopped_longer_than_its_lease_change_nothing(here: World) -> None:
    zombie = here.start(SCHEDULER_INSTANCE_ID="zombie")
    zombie.add("long", "nap", 2.5, schedule_type="immediate")
    eventually(lambda: started(here, "long"))
    stop_between_writes(here, zombie)
    other = here.start(SCHEDULER_INSTANCE_ID="other", SCHEDULER_LEASE_TTL="10s")  # on a busy machine too

    def done() -> dict[str, Any] | None:
        [row] = other.history("long")
        return row if row["status"] == "completed" else None

    before = eventually(done)
    assert (before["instance_id"], before["attempt"], before["losses"]) == ("other", 2, 1)
    zombie.send(signal.SIGCONT)
    eventually(lambda: "lease.lost" in zombie.lines() or "settle.refused" in zombie.lines())
    assert done() == before
    attempts = other.ask("GET", f"/api/v2/executions/{before['id']}")["attempts"]
    assert [one["outcome"] for one in attempts] == ["lost", "completed"]

    other.kill()  # and the one that woke up is as good as before
    zombie.add("next", "nap", schedule_type="immediate")
    eventually(lambda: started(here, "next"))


def test_it_hands_over_in_a_rolling_restart_without_losing_a_second(here: World) -> None:
    old = here.start()
    old.add("steady", "nap", 0.05, **EVERY_SECOND)
    eventually(lambda: len(started(here, "steady")) >= 2)
    new = here.start()
    old.send(signal.SIGTERM)
    assert old.wait() == 0, old.lines()
    seen = len(started(here, "steady"))
    eventually(lambda: len(started(here, "steady")) >= seen + 3)
    rows = [row for row in new.history("steady") if row["status"] != "queued"]
    reasons = [row.get("skip_reason") for row in rows]
    assert {row["status"] for row in rows} <= {"completed", "running"}, reasons
    assert len(started(here, "steady")) == len({mark.execution for mark in started(here, "steady")})
