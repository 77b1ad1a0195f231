from __future__ import annotations

from datetime import timedelta

import pytest

from noonday.domain.errors import Conflict, NotFound
from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.outcome import Accepted, Lost, TimedOut
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from tests.factories import LEASE, NOON, a_job, an_id
from tests.store.store_steps import MINUTE, SECOND, add, claim, end, look, plan_run


def running(db: Database, **changes: object) -> Claim:
    job = a_job(**changes)
    add(db, job)
    plan_run(db, job)
    (claimed,) = claim(db)
    return claimed


def token(claimed: Claim) -> str:
    assert claimed.execution.lease_token is not None
    return claimed.execution.lease_token


def test_renewing_tells_what_is_still_ours_and_what_should_stop(db: Database) -> None:
    mine, stopping, lost = running(db), running(db), running(db)
    end(db, lost)
    db.write_now(lambda conn: executions.request_cancel(conn, stopping.execution.id, "ada", NOON))
    held = {c.execution.id: token(c) for c in (mine, stopping, lost)}
    held[ExecutionId(an_id())] = "never was"
    later = NOON + 2 * LEASE
    told = db.write_now(lambda conn: executions.renew(conn, held, later))
    assert told == {mine.execution.id: False, stopping.execution.id: True}
    assert look(db, mine.execution).lease_expires_at == later


def test_a_stale_token_renews_nothing(db: Database) -> None:
    claimed = running(db)
    held = {claimed.execution.id: "stale"}
    assert db.write_now(lambda conn: executions.renew(conn, held, NOON + MINUTE)) == {}
    assert look(db, claimed.execution) == claimed.execution


def test_it_finds_runs_whose_lease_died(db: Database) -> None:
    claimed = running(db)
    assert db.write_now(lambda conn: executions.expired(conn, NOON + LEASE)) == []
    assert db.read_now(executions.next_lease_end) == NOON + LEASE
    (found,) = db.write_now(lambda conn: executions.expired(conn, NOON + LEASE + SECOND))
    assert (found.execution_id, found.token) == (claimed.execution.id, token(claimed))
    assert isinstance(found.outcome, Lost)
    assert "instance-1" in found.outcome.detail


def test_a_remote_run_that_takes_too_long_has_timed_out(db: Database) -> None:
    claimed = running(db, timeout=timedelta(minutes=2))
    end(db, claimed, Accepted(heartbeat=timedelta(hours=1)))
    assert db.read_now(executions.next_lease_end) == NOON + 2 * MINUTE
    (found,) = db.write_now(lambda conn: executions.expired(conn, NOON + 3 * MINUTE))
    assert found.outcome == TimedOut(after=2 * MINUTE)


def test_the_time_out_of_a_run_of_our_own_is_its_runners_business(db: Database) -> None:
    claimed = running(db, timeout=SECOND)
    held = {claimed.execution.id: token(claimed)}
    db.write_now(lambda conn: executions.renew(conn, held, NOON + timedelta(hours=1)))
    assert db.write_now(lambda conn: executions.expired(conn, NOON + MINUTE)) == []


def test_no_lease_no_end(db: Database) -> None:
    assert db.read_now(executions.next_lease_end) is None


def test_a_report_is_kept_and_extends_the_lease(db: Database) -> None:
    claimed = running(db)
    wants_stop = db.write_now(
        lambda conn: executions.report(conn, claimed.execution.id, 1, 0.5, "half\x00way", NOON, MINUTE)
    )
    assert wants_stop is False
    after = look(db, claimed.execution)
    assert after.progress == 0.5
    assert after.progress_message is not None
    assert after.progress_message.startswith("half")
    assert after.lease_expires_at == NOON + MINUTE


def test_a_report_without_news_changes_nothing(db: Database) -> None:
    claimed = running(db)
    db.write_now(lambda conn: executions.report(conn, claimed.execution.id, 1, None, None, NOON, None))
    assert look(db, claimed.execution) == claimed.execution


def test_a_report_is_told_that_the_run_should_stop(db: Database) -> None:
    claimed = running(db)
    db.write_now(lambda conn: executions.request_cancel(conn, claimed.execution.id, "ada", NOON))
    assert db.write_now(lambda conn: executions.report(conn, claimed.execution.id, 1, 0.1, None, NOON, None))


def test_only_the_running_attempt_may_report(db: Database) -> None:
    claimed = running(db)
    with pytest.raises(Conflict):
        db.write_now(lambda conn: executions.report(conn, claimed.execution.id, 2, 0.1, None, NOON, None))
    end(db, claimed)
    with pytest.raises(Conflict):
        db.write_now(lambda conn: executions.report(conn, claimed.execution.id, 1, 0.1, None, NOON, None))
    assert look(db, claimed.execution).state is ExecutionState.COMPLETED
    with pytest.raises(NotFound):
        db.write_now(lambda conn: executions.report(conn, "nobody", 1, 0.1, None, NOON, None))
