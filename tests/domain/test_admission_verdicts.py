"""What may start at the claim: pause, misfire, dependencies and overlap, alone and in order of weight."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.admission import (
    AdmitFacts,
    Replace,
    Skip,
    Start,
    Verdict,
    Wait,
    admit,
    certain_since,
    most_at_once,
)
from noonday.domain.dependency import ParentFacts
from noonday.domain.execution import Cause, ExecutionId, SkipReason, WaitReason
from noonday.domain.job import CatchUp, Job, JobId, JobState, MisfirePolicy, Overlap, OverlapPolicy
from noonday.domain.schedule import Immediate, Interval
from tests.factories import NOON, a_job, a_timing, an_execution

OTHERS = (ExecutionId("first"), ExecutionId("second"), ExecutionId("third"))
FIXED_DELAY = a_timing(Interval(count=5, after_completion=True))
PARENT = JobId("parent")
NOT_SCHEDULED = [cause for cause in Cause if cause is not Cause.SCHEDULE]


def verdict(job: Job, facts: AdmitFacts | None = None, late: timedelta = timedelta(), **of: Any) -> Verdict:
    return admit(job, an_execution(job=job, **of), facts or AdmitFacts(), NOON + late)


def overlapping(overlap: Overlap, max_instances: int = 1, **changes: Any) -> Job:
    return a_job(overlapping=OverlapPolicy(overlap=overlap, max_instances=max_instances), **changes)


def reason_of(given: Verdict) -> SkipReason | WaitReason | None:
    return given.reason if isinstance(given, Skip | Wait) else None


def running(count: int = 1, waiting: int = 0) -> AdmitFacts:
    return AdmitFacts(running=count, waiting_for_turn=waiting, running_ids=OTHERS[:count])


def test_a_free_job_starts() -> None:
    assert verdict(a_job()) == Start()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"paused": True}, SkipReason.PAUSED),
        ({"enabled": False}, SkipReason.DISABLED),
        ({"enabled": False, "paused": True}, SkipReason.DISABLED),
        ({"state": JobState.CANCELLED, "paused": True}, SkipReason.CANCELLED),
    ],
)
@pytest.mark.parametrize("attempt", [0, 2])
def test_a_stopped_job_starts_no_attempt_by_schedule(
    changes: dict[str, Any], reason: SkipReason, attempt: int
) -> None:
    assert reason_of(verdict(a_job(**changes), attempt=attempt)) is reason


@pytest.mark.parametrize("cause", NOT_SCHEDULED)
def test_a_paused_or_disabled_job_runs_when_something_else_asks(cause: Cause) -> None:
    assert verdict(a_job(paused=True, enabled=False), cause=cause) == Start()


@pytest.mark.parametrize("cause", list(Cause))
def test_nothing_runs_of_a_cancelled_job(cause: Cause) -> None:
    cancelled = a_job(state=JobState.CANCELLED)
    assert reason_of(verdict(cancelled, cause=cause)) is SkipReason.CANCELLED


class TestMisfire:
    LATE = timedelta(seconds=301)

    def test_it_skips_what_found_no_worker_within_the_grace(self) -> None:
        assert reason_of(verdict(a_job(), late=self.LATE)) is SkipReason.MISFIRE
        assert verdict(a_job(), late=timedelta(seconds=300)) == Start()

    @pytest.mark.parametrize("catch_up", [CatchUp.LATEST, CatchUp.ALL])
    def test_catching_up_means_late_is_fine(self, catch_up: CatchUp) -> None:
        assert verdict(a_job(misfire=MisfirePolicy(catch_up=catch_up)), late=self.LATE) == Start()

    @pytest.mark.parametrize("cause", NOT_SCHEDULED)
    def test_what_was_asked_for_is_never_too_late(self, cause: Cause) -> None:
        assert verdict(a_job(), late=self.LATE, cause=cause) == Start()

    def test_a_retry_is_never_too_late(self) -> None:
        assert verdict(a_job(), late=self.LATE, attempt=1) == Start()

    def test_it_counts_from_when_it_could_have_started(self) -> None:
        jittered = NOON + timedelta(seconds=60)
        assert verdict(a_job(), late=self.LATE, available_at=jittered) == Start()

    def test_what_was_planned_late_has_its_grace_from_then_on(self) -> None:
        planned_at = NOON + timedelta(seconds=60)
        assert verdict(a_job(), late=self.LATE, created_at=planned_at) == Start()

    def test_an_immediate_job_is_never_too_late(self) -> None:
        assert verdict(a_job(schedule=Immediate()), late=self.LATE) == Start()

    def test_waiting_for_a_turn_is_not_lateness(self) -> None:
        assert verdict(a_job(), late=self.LATE, wait_reason=WaitReason.OVERLAP) == Start()


class TestOverlap:
    @pytest.mark.parametrize("policy", list(Overlap))
    @pytest.mark.parametrize("going", [0, 1])
    def test_below_the_limit_it_starts(self, policy: Overlap, going: int) -> None:
        assert verdict(overlapping(policy, max_instances=2), running(going, waiting=3)) == Start()

    @pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.BACKFILL])
    @pytest.mark.parametrize(
        ("policy", "waiting", "expected"),
        [
            (Overlap.SKIP, 0, SkipReason.OVERLAP),
            (Overlap.QUEUE, 0, WaitReason.OVERLAP),
            (Overlap.QUEUE, 7, WaitReason.OVERLAP),
            (Overlap.QUEUE_ONE, 0, WaitReason.OVERLAP),
            (Overlap.QUEUE_ONE, 1, SkipReason.OVERLAP),
            (Overlap.ALLOW, 0, None),
        ],
    )
    def test_at_the_limit_the_policy_decides_whatever_the_cause(
        self, policy: Overlap, waiting: int, expected: SkipReason | WaitReason | None, cause: Cause
    ) -> None:
        given = verdict(overlapping(policy), running(1, waiting), cause=cause)
        assert reason_of(given) is expected
        assert isinstance(given, Start) is (expected is None)

    def test_the_one_that_waits_already_goes_on_waiting(self) -> None:
        given = verdict(overlapping(Overlap.QUEUE_ONE), running(1, 1), wait_reason=WaitReason.OVERLAP)
        assert reason_of(given) is WaitReason.OVERLAP

    def test_it_replaces_the_running_one(self) -> None:
        assert verdict(overlapping(Overlap.REPLACE), running(1)) == Replace((OTHERS[0],))

    def test_it_replaces_only_as_many_as_needed_and_the_oldest_first(self) -> None:
        assert verdict(overlapping(Overlap.REPLACE, max_instances=2), running(2)) == Replace(OTHERS[:1])
        assert verdict(overlapping(Overlap.REPLACE, max_instances=2), running(3)) == Replace(OTHERS[:2])

    @pytest.mark.parametrize("policy", [policy for policy in Overlap if policy is not Overlap.ALLOW])
    @pytest.mark.parametrize("of", [{"attempt": 1}, {"cause": Cause.BACKFILL}])
    def test_a_retry_and_a_backfill_wait_their_turn(self, policy: Overlap, of: dict[str, Any]) -> None:
        assert reason_of(verdict(overlapping(policy), running(1, 1), **of)) is WaitReason.OVERLAP

    def test_a_retry_is_not_blocked_by_itself(self) -> None:
        assert verdict(overlapping(Overlap.SKIP), running(0), attempt=1) == Start()


class TestDependencies:
    def judged(self, parent: ParentFacts | None, job: Job | None = None, **of: Any) -> Verdict:
        child = job or a_job(depends_on=(PARENT,), last_run_at=NOON - timedelta(hours=1))
        facts = AdmitFacts(parents=(parent,) if parent else ())
        return verdict(child, facts, covers_from=NOON - timedelta(hours=1), **of)

    MISSING = ParentFacts(job_id=PARENT, name="extract")
    FAILED = ParentFacts(job_id=PARENT, name="extract", last_status="failed")
    SUCCEEDED = ParentFacts(
        job_id=PARENT, name="extract", last_success_for=NOON, last_success_at=NOON, last_status="completed"
    )

    def test_it_starts_when_the_parent_has_succeeded(self) -> None:
        assert self.judged(self.SUCCEEDED) == Start()

    def test_it_waits_for_the_parent_by_name(self) -> None:
        given = self.judged(self.MISSING)
        assert given == Wait(WaitReason.DEPENDENCY, "waits for a success of extract")

    def test_a_failed_parent_leaves_it_skipped(self) -> None:
        given = self.judged(self.FAILED)
        assert reason_of(given) is SkipReason.DEPENDENCY
        assert isinstance(given, Skip)
        assert "extract" in given.detail

    def test_a_parent_that_is_gone_is_told_and_not_taken_as_done(self) -> None:
        given = self.judged(None)
        assert isinstance(given, Wait)
        assert (given.reason, PARENT in given.detail) == (WaitReason.DEPENDENCY, True)

    @pytest.mark.parametrize("cause", [Cause.MANUAL, Cause.ADMIN, Cause.BACKFILL])
    def test_what_a_person_asks_for_does_not_wait(self, cause: Cause) -> None:
        assert self.judged(self.FAILED, cause=cause) == Start()

    @pytest.mark.parametrize("cause", [Cause.TRIGGER, Cause.UPSTREAM])
    def test_a_trigger_does_not_bypass_dependencies(self, cause: Cause) -> None:
        assert reason_of(self.judged(self.MISSING, cause=cause)) is WaitReason.DEPENDENCY

    def test_a_retry_was_admitted_before(self) -> None:
        assert self.judged(self.FAILED, attempt=1) == Start()

    def test_a_ready_child_may_still_overlap(self) -> None:
        child = a_job(depends_on=(PARENT,))
        facts = AdmitFacts(running=1, running_ids=OTHERS[:1], parents=(self.SUCCEEDED,))
        assert reason_of(verdict(child, facts)) is SkipReason.OVERLAP


class TestFixedDelay:
    """Its end makes the next one due, so it is never skipped for what passes by itself."""

    def test_it_runs_however_late(self) -> None:
        assert verdict(a_job(timing=FIXED_DELAY), late=timedelta(days=3)) == Start()

    def test_it_waits_where_another_would_be_skipped_for_overlap(self) -> None:
        job = overlapping(Overlap.SKIP, timing=FIXED_DELAY)
        assert reason_of(verdict(job, running(1))) is WaitReason.OVERLAP
        assert reason_of(verdict(job, running(1), cause=Cause.MANUAL)) is SkipReason.OVERLAP

    def test_it_waits_for_a_failed_parent(self) -> None:
        job = a_job(timing=FIXED_DELAY, depends_on=(PARENT,))
        facts = AdmitFacts(parents=(TestDependencies.FAILED,))
        assert reason_of(verdict(job, facts)) is WaitReason.DEPENDENCY

    def test_pause_ends_it_and_resume_arms_anew(self) -> None:
        assert reason_of(verdict(a_job(timing=FIXED_DELAY, paused=True))) is SkipReason.PAUSED


def test_every_verdict_that_holds_back_says_why_in_words() -> None:
    for policy in (Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_ONE):
        given = admit(overlapping(policy), an_execution(), running(1, 1), NOON)
        assert isinstance(given, Skip | Wait)
        assert "1 of at most 1" in given.detail


@given(
    job=st.builds(
        overlapping,
        st.sampled_from(Overlap),
        st.integers(1, 3),
        paused=st.booleans(),
        enabled=st.booleans(),
        state=st.sampled_from([JobState.SCHEDULED, JobState.RUNNING, JobState.CANCELLED]),
        depends_on=st.sampled_from([(), (PARENT,)]),
        schedule=st.sampled_from([Immediate(), Interval(count=5), Interval(count=5, after_completion=True)]),
        misfire=st.builds(
            MisfirePolicy,
            catch_up=st.sampled_from(CatchUp),
            grace=st.sampled_from([timedelta(), timedelta(minutes=1), timedelta(days=300_000)]),
        ),
    ),
    cause=st.sampled_from(Cause),
    running_now=st.integers(0, 3),
    waiting=st.integers(0, 2),
    late=st.timedeltas(timedelta(), timedelta(minutes=3)),
)
def test_what_is_certain_is_what_would_be_decided(
    job: Job, cause: Cause, running_now: int, waiting: int, late: timedelta
) -> None:
    now = NOON + late
    since = certain_since(job, now)
    execution = an_execution(job=job, cause=cause)
    assert execution.available_at is not None
    if since is not None and execution.available_at >= since and running_now < most_at_once(job):
        assert admit(job, execution, running(running_now, waiting), now) == Start()


def test_it_is_certain_of_most_jobs() -> None:
    assert certain_since(a_job(), NOON) == NOON - MisfirePolicy().grace
    assert most_at_once(a_job()) == 1
    assert most_at_once(overlapping(Overlap.ALLOW)) == inf
