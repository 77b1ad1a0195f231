"""What a remote run may report, and what it may not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from noonday.control.errors import Gone
from noonday.control.executions import Report
from noonday.domain.errors import Conflict, NotAllowed, NotFound
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import JobState, RetryPolicy
from noonday.domain.outcome import Accepted, Completed, Failed, Lost, Result
from noonday.domain.schedule import Manual
from noonday.domain.target import HttpTarget
from tests.control.desk import Desk, token_of
from tests.factories import NOON, an_id

TARGET = HttpTarget(url="https://example.com", heartbeat_seconds=90)


async def remote_run(desk: Desk, retry: RetryPolicy | None = None) -> Execution:
    """A run that answered 202 a moment ago."""
    job = await desk.new(schedule=Manual(), target=TARGET, retry=retry or RetryPolicy())
    await desk.jobs.force_run(job.id)
    (run,) = await desk.claim()
    await desk.settle(run, Accepted(heartbeat=timedelta(seconds=90)))
    return await desk.executions.get(run.id)


async def test_it_lives_by_its_heartbeats(desk: Desk) -> None:
    run = await remote_run(desk)
    desk.advance(seconds=60)
    assert await desk.executions.report(run.id, token_of(run.id, 1), Report()) is False
    alive = await desk.executions.get(run.id)
    assert alive.lease_expires_at == NOON + timedelta(seconds=150)


async def test_it_keeps_what_the_run_says_of_its_progress(desk: Desk) -> None:
    run = await remote_run(desk)
    await desk.executions.report(run.id, token_of(run.id, 1), Report(progress=0.5, message="half"))
    seen = await desk.executions.get(run.id)
    assert (seen.progress, seen.progress_message) == (0.5, "half")


async def test_it_leaves_the_lease_of_a_local_run_to_its_worker(desk: Desk) -> None:
    job = await desk.new(schedule=Manual(), target=TARGET)
    await desk.jobs.force_run(job.id)
    (run,) = await desk.claim()
    desk.advance(seconds=10)
    await desk.executions.report(run.id, token_of(run.id, 1), Report(progress=0.1))
    assert (await desk.executions.get(run.id)).lease_expires_at == run.lease_expires_at


async def test_it_tells_the_run_that_it_should_stop(desk: Desk) -> None:
    run = await remote_run(desk)
    asked = await desk.executions.cancel(run.id, "alice")
    assert (asked.state, asked.cancel_requested_by) == (ExecutionState.RUNNING, "alice")
    assert await desk.executions.report(run.id, token_of(run.id, 1), Report()) is True
    (entry,) = await desk.audit(run.id)
    assert (entry.actor, entry.action, entry.kind) == ("alice", "cancel", "execution")


async def test_it_ends_with_the_result_that_was_reported(desk: Desk) -> None:
    run = await remote_run(desk)
    desk.advance(seconds=30)
    result = Result(items_processed=10, items_succeeded=9, items_failed=1, metadata={"batch": 7})
    await desk.executions.result(run.id, token_of(run.id, 1), Completed(result=result))
    done = await desk.executions.get(run.id)
    assert (done.state, done.completed_at) == (ExecutionState.COMPLETED, desk.clock.now())
    assert (done.result.items_processed, dict(done.result.metadata)) == (10, {"batch": 7})
    (attempt,) = await desk.executions.attempts(run.id)
    assert (attempt.number, attempt.outcome) == (1, "completed")
    assert (await desk.jobs.get(run.job_id)).state is JobState.SCHEDULED


async def test_it_retries_what_the_run_reports_as_failed(desk: Desk) -> None:
    run = await remote_run(desk)
    await desk.executions.result(run.id, token_of(run.id, 1), Failed(error="no room"))
    waiting = await desk.executions.get(run.id)
    assert (waiting.state, waiting.failures, waiting.error) == (ExecutionState.PENDING, 1, "no room")


async def test_it_refuses_a_foreign_token(desk: Desk) -> None:
    run, other = await remote_run(desk), await remote_run(desk)
    for token in (token_of(other.id, 1), token_of(run.id, 2), "guess"):
        with pytest.raises(NotAllowed):
            await desk.executions.report(run.id, token, Report())
    assert (await desk.executions.get(run.id)).progress is None


async def test_it_tells_an_attempt_that_is_over_that_it_is_over(desk: Desk) -> None:
    run = await remote_run(desk)
    await desk.settle(run, Lost(detail="silent"))
    (again,) = await desk.claim()
    assert again.attempt == 2
    with pytest.raises(Gone, match="over and the execution is running"):
        await desk.executions.result(run.id, token_of(run.id, 1), Completed())
    await desk.executions.result(run.id, token_of(run.id, 2), Completed())
    for attempt in (1, 2):
        with pytest.raises(Gone, match="is completed"):
            await desk.executions.report(run.id, token_of(run.id, attempt), Report(progress=1.0))
    assert (await desk.executions.get(run.id)).progress is None


async def test_it_cancels_at_once_what_waits_and_refuses_what_has_ended(desk: Desk) -> None:
    job = await desk.new(schedule=Manual())
    run = await desk.jobs.force_run(job.id)
    assert (await desk.executions.cancel(run.id)).state is ExecutionState.CANCELLED
    assert (await desk.jobs.get(job.id)).state is JobState.SCHEDULED
    with pytest.raises(Conflict, match="is cancelled: there is nothing to cancel"):
        await desk.executions.cancel(run.id)


async def test_it_says_which_execution_it_did_not_find(desk: Desk) -> None:
    missing = an_id()
    for asked in (missing, "no-id", ""):
        with pytest.raises(NotFound, match=f"no execution '{asked}'"):
            await desk.executions.get(asked)


async def test_it_pages_through_the_history_newest_first(desk: Desk) -> None:
    job = await desk.new(schedule=Manual(), name="paged")
    runs = []
    for _ in range(5):
        desk.advance(seconds=1)
        run = await desk.jobs.force_run(job.id)
        (claimed,) = await desk.claim()
        await desk.settle(claimed, Completed())
        runs.append(run.id)
    page = await desk.executions.page("paged", limit=2, offset=1)
    assert ([e.id for e in page.items], page.total) == ([runs[3], runs[2]], 5)
    assert (await desk.executions.page("paged", status=ExecutionState.FAILED)).total == 0
    assert (await desk.executions.page()).total == 5
