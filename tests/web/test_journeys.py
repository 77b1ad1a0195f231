"""The way of a run, step by step: no step comes before the one it follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from noonday.domain.execution import ExecutionState
from noonday.web.journeys import steps
from tests.factories import NOON, a_job, an_execution

SECOND = timedelta(seconds=1)


def test_a_run_that_was_claimed_ahead_is_shown_to_wait_for_its_moment() -> None:
    planned = replace(an_execution(job=a_job(), scheduled_for=NOON), created_at=NOON - SECOND)
    run = replace(
        planned,
        state=ExecutionState.COMPLETED,
        attempt=1,
        claimed_at=NOON - SECOND / 100,
        started_at=NOON,
        completed_at=NOON + SECOND,
    )
    shown = steps(run, NOON + 2 * SECOND)
    assert [step.word for step in shown] == ["planned", "queued", "claimed", "running", "completed"]
    moments = [step.at for step in shown if step.at is not None]
    assert moments == sorted(moments)
