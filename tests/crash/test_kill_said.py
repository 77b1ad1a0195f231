"""kill -9 while runs write and while pauses end: what was said stays, a pause ends once, a skip stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.crash.processes import Noonday, World, eventually

pytestmark = pytest.mark.crash

EVERY_SECOND = {"schedule_type": "interval", "interval_minutes": 1, "interval_type": "seconds"}


def said(noonday: Noonday, run: str, attempt: int) -> dict[str, Any]:
    found: dict[str, Any] = noonday.ask("GET", f"/api/v2/executions/{run}/output?attempt={attempt}")
    return {**found, "text": "".join(piece["text"] for piece in found["pieces"])}


def test_what_a_run_said_before_the_kill_can_be_read_after_it(here: World) -> None:
    first = here.start()
    script = 'echo "attempt $NOONDAY_ATTEMPT begins"; [ $NOONDAY_ATTEMPT = 2 ] || sleep 60; echo "and ends"'
    target = {"type": "command", "argv": ["sh", "-c", script]}
    first.ask("POST", "/api/v2/jobs", {"name": "talks", "target": target, "schedule_type": "manual"})
    run = first.ask("POST", "/api/v2/jobs/talks/force-run")["execution_id"]
    eventually(lambda: said(first, run, 1)["text"] == "attempt 1 begins\n")
    first.kill()
    second = here.start()
    eventually(lambda: second.ask("GET", f"/api/v2/executions/{run}")["status"] == "completed")
    before, after = said(second, run, 1), said(second, run, 2)
    assert (before["text"], before["ended"]) == ("attempt 1 begins\n", True)
    assert (after["text"], after["ended"]) == ("attempt 2 begins\nand ends\n", True)
    assert after["newest_attempt"] == 2


def test_a_pause_that_ends_while_nobody_is_there_ends_once_and_loses_nothing(here: World) -> None:
    first = here.start()
    first.add("often", "nap", 0.0, **EVERY_SECOND, misfire_grace_seconds=300, coalesce=False)
    first.add("later", schedule_type="interval", interval_minutes=1, interval_type="hours")
    skipped = first.ask("POST", "/api/v2/jobs/later/skip-next")
    until = datetime.now(UTC) + timedelta(seconds=2)
    first.ask("POST", "/api/v2/jobs/often/pause", {"until": until.isoformat()})
    first.kill()
    eventually(lambda: datetime.now(UTC) > until + timedelta(seconds=1))
    second, third = here.start(), here.start()

    def came() -> list[dict[str, Any]] | None:
        rows = [
            row for row in second.history("often") if datetime.fromisoformat(row["scheduled_for"]) >= until
        ]
        return rows if rows and rows[0]["status"] == "completed" else None

    rows = eventually(came)
    assert datetime.fromisoformat(rows[0]["scheduled_for"]) < until + timedelta(seconds=1)
    assert "paused" not in {row["skip_reason"] for row in rows}, "the pause was over"
    changes = third.ask("GET", "/api/v2/jobs/often/audit")["entries"]
    assert [one["action"] for one in changes].count("resume") == 1
    [row] = third.history("later")
    assert (row["status"], row["skip_reason"]) == ("skipped", "skipped")
    assert third.ask("GET", "/api/v2/jobs/later")["next_run_at"] == skipped["next_run_at"]
