"""Ends told by those who ran them: of a success only the token is compared, and all is as if it were read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from noonday.domain.execution import Cause, Execution
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.domain.outcome import Accepted, Cancelled, Completed, Outcome, Result
from noonday.domain.schedule import Interval, IntervalUnit, Manual, Once
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from tests.factories import NOON, a_job, a_timing, an_execution
from tests.store.store_steps import (
    BAD,
    MINUTE,
    OK,
    SECOND,
    add,
    claim,
    ending,
    everything,
    plan,
    runs_of,
    settle,
    sql,
    wipe,
)

ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)
QUEUE = OverlapPolicy(overlap=Overlap.QUEUE)
RICH = Completed(result=Result(value={"n": 1}, output_tail="done", status_code=200, metadata={"a": "b"}))


@dataclass
class Case:
    """Jobs and planned runs, what happens to those that were claimed, and how they end."""

    jobs: list[Job]
    planned: list[Execution]
    outcomes: list[Outcome]
    before: Callable[[Database, list[Claim]], None] = lambda db, claims: None


def one(job: Job, outcome: Outcome = OK, **changes: Any) -> Case:
    return Case([job], runs_of(job, 1, **changes), [outcome])


def failed_before() -> Case:
    job = a_job()
    return Case([job], runs_of(job, 1), [RICH], before=_fail_and_claim_again)


def _fail_and_claim_again(db: Database, claims: list[Claim]) -> None:
    settle(db, [ending(claims[0], BAD)], NOON)
    claims[:] = claim(db, NOON + timedelta(hours=1))


def cancelled_meanwhile(outcome: Outcome) -> Case:
    job = a_job()

    def cancel(db: Database, claims: list[Claim]) -> None:
        found = claims[0].execution.id
        db.write_now(lambda conn: executions.request_cancel(conn, found, by="somebody", now=NOON))

    return Case([job], runs_of(job, 1), [outcome], before=cancel)


def with_others(depends_on: bool) -> Case:
    parent = a_job(schedule=Manual())
    links = {"depends_on": (parent.id,)} if depends_on else {"on_success_of": (parent.id,)}
    child = a_job(schedule=Manual(), **links)
    waiting = an_execution(job=child, scheduled_for=NOON, cause=Cause.TRIGGER) if depends_on else None
    planned = [*runs_of(parent, 1), *([waiting] if waiting else [])]
    return Case([parent, child], planned, [OK])


def mixed() -> Case:
    free, other = a_job(overlapping=ALLOW), a_job(overlapping=ALLOW)
    planned = [*runs_of(free, 3), *runs_of(other, 2)]
    return Case([free, other], planned, [OK, BAD, RICH, OK, Cancelled()])


CASES: dict[str, Callable[[], Case]] = {
    "a success": lambda: one(a_job()),
    "with a result": lambda: one(a_job(), RICH),
    "of a single run": lambda: one(a_job(schedule=Once(run_at=NOON))),
    "of a chain": lambda: one(
        a_job(
            timing=a_timing(Interval(count=5, unit=IntervalUnit.MINUTES, after_completion=True)),
            next_run_at=None,
        )
    ),
    "many of one job": lambda: Case([job := a_job(overlapping=ALLOW)], runs_of(job, 5), [OK] * 3),
    "another has its turn": lambda: Case([job := a_job(overlapping=QUEUE)], runs_of(job, 3), [OK]),
    "after a failure": failed_before,
    "asked to stop, and done": lambda: cancelled_meanwhile(OK),
    "asked to stop": lambda: cancelled_meanwhile(Cancelled()),
    "others depend on it": lambda: with_others(depends_on=True),
    "others follow it": lambda: with_others(depends_on=False),
    "some fail": mixed,
    "it goes on elsewhere": lambda: one(a_job(), Accepted(heartbeat=MINUTE)),
    "by hand": lambda: one(a_job(schedule=Manual()), cause=Cause.MANUAL),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_if_all_had_been_read(db: Database, name: str) -> None:
    case = CASES[name]()
    told = ended(db, case, by_runner=False)
    wipe(db)
    assert ended(db, case, by_runner=True) == told


def ended(db: Database, case: Case, *, by_runner: bool) -> dict[str, Any]:
    for job in case.jobs:
        add(db, job)
    plan(db, *case.planned)
    claims = sorted(claim(db), key=lambda one: one.execution.id)
    case.before(db, claims)
    endings = []
    for place, (claimed, outcome) in enumerate(zip(claims, case.outcomes, strict=False)):
        made = ending(claimed, outcome)
        began = NOON + place * SECOND
        made = replace(made, started_at=began, ended_at=began + SECOND)
        endings.append(replace(made, claim=claimed) if by_runner else made)
    if by_runner:
        done = db.write_now(lambda conn: executions.settle_held(conn, endings, NOON + MINUTE, 0.5))
        assert done == ({one.execution_id for one in endings}, set())
    else:
        settlements = db.write_now(lambda conn: executions.settle(conn, endings, NOON + MINUTE, 0.5))
        assert len(settlements) == len(endings)
    return everything(db, case.jobs)


def test_an_end_that_comes_too_late_changes_nothing(db: Database) -> None:
    job = a_job(overlapping=ALLOW)
    add(db, job)
    plan(db, *runs_of(job, 2))
    first, second = claim(db)
    settle(db, [ending(first)])
    before = everything(db, [job])
    late = [replace(ending(first), claim=first), replace(ending(second), token="stolen", claim=second)]
    assert db.write_now(lambda conn: executions.settle_held(conn, late, NOON + MINUTE)).settled == set()
    assert everything(db, [job]) == before


@pytest.mark.parametrize("by_runner", [False, True])
def test_results_that_are_equal_and_not_the_same_are_kept_apart(db: Database, by_runner: bool) -> None:
    """In one batch; JSON tells 1 from 1.0 and from true."""
    job, told = a_job(overlapping=ALLOW), [1, True, 1.0]
    outcomes: list[Outcome] = [Completed(result=Result(value={"n": value})) for value in told]
    case = Case([job], runs_of(job, 3), outcomes)
    ended(db, case, by_runner=by_runner)
    kept = [db.read_now(lambda conn, run=run: executions.get(conn, run.id)) for run in case.planned]  # type: ignore[misc]
    assert [repr(run.result.value["n"]) for run in kept if run is not None] == ["1", "True", "1.0"]


class TestOfManyRunsBesideEachOther:
    """While the newest of them goes on nobody is asked what is open; when it ends, it is asked."""

    @staticmethod
    def states(db: Database, claims: list[Claim], order: list[int]) -> list[tuple[str, str | None]]:
        """After each end, in this order: the state of the job and the token of its lock."""
        seen = []
        for place in order:
            one = replace(ending(claims[place]), claim=claims[place])
            db.write_now(lambda conn, one=one: executions.settle_held(conn, [one], NOON + SECOND))  # type: ignore[misc]
            [row] = sql(db, "SELECT status, lock_token FROM jobs")
            seen.append((str(row["status"]), cast(str | None, row["lock_token"])))
        return seen

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
    def test_the_job_runs_until_the_last_has_ended(self, db: Database, order: list[int]) -> None:
        job = a_job(overlapping=ALLOW, next_run_at=NOON + MINUTE)
        add(db, job)
        plan(db, *runs_of(job, 3))
        claims = claim(db)
        states = self.states(db, claims, order)
        assert [status for status, _ in states] == ["running", "running", "scheduled"]
        left = [claims[place].execution.lease_token for place in order]
        for after, (_, token) in enumerate(states, 1):
            assert token in left[after:] if left[after:] else token is None

    def test_a_lock_that_somebody_left_long_ago_is_not_believed(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW, next_run_at=NOON + MINUTE)
        add(db, job)
        plan(db, *runs_of(job, 1))
        [claimed] = claim(db)
        old = (NOON - MINUTE).isoformat()
        sql(db, f"UPDATE jobs SET lock_token = 'foreign', lock_acquired_at = '{old}'")
        assert self.states(db, [claimed], [0]) == [("scheduled", None)]
