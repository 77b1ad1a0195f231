"""At the claim: may this execution start now, must it wait, or is it skipped? And why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import assert_never

from noonday.domain.dependency import Broken, ParentFacts, Ready, Waiting, readiness
from noonday.domain.execution import Cause, Execution, ExecutionId, SkipReason, WaitReason
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import CatchUp, Job, JobState, Overlap
from noonday.domain.schedule import Immediate
from noonday.domain.wallclock import EARLIEST

_ASKED_FOR = frozenset({Cause.MANUAL, Cause.ADMIN, Cause.BACKFILL})  # somebody knows what they want


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitFacts:
    """What else is going on with the job, this execution itself not counted."""

    running: int = 0
    waiting_for_turn: int = 0  # pending with reason overlap
    running_ids: tuple[ExecutionId, ...] = ()  # oldest first; read only where the policy is replace
    parents: tuple[ParentFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    pass


@dataclass(frozen=True, slots=True)
class Skip:
    reason: SkipReason
    detail: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Pending without available_at, until what it waits for happens."""

    reason: WaitReason
    detail: str


@dataclass(frozen=True, slots=True)
class Replace:
    """These are asked to cancel; the execution waits with reason overlap until they have ended."""

    cancel: tuple[ExecutionId, ...]


Verdict = Start | Skip | Wait | Replace


def admit(job: Job, execution: Execution, facts: AdmitFacts, now: datetime) -> Verdict:
    """Decided again at each claim, for only then is it known what still runs.

    What was admitted before (a retry) may have to wait for its turn, but is not skipped for what came after.
    Pausing, disabling and cancelling the job end it all the same, for no new attempt may start after those.
    """
    return (
        _stopped(job, execution)
        or _too_late(job, execution, now)
        or _depending(job, execution, facts)
        or _overlapping(job, execution, facts)
        or Start()
    )


def certain_since(job: Job, now: datetime) -> datetime | None:
    """A fresh execution that became available at this moment or later starts, if the job may have one more
    running. None where `admit` must be asked about each.
    """
    if job.depends_on or job.state is JobState.CANCELLED or job.paused or not job.enabled:
        return None
    if job.misfire.catch_up is not CatchUp.NONE:
        return EARLIEST
    return now - min(job.misfire.grace, now - EARLIEST)


def most_at_once(job: Job) -> float:
    """How many may run beside each other."""
    policy = job.overlapping
    return inf if policy.overlap is Overlap.ALLOW else policy.max_instances


def _stopped(job: Job, execution: Execution) -> Skip | None:
    if job.state is JobState.CANCELLED:
        return Skip(SkipReason.CANCELLED, "the job was cancelled")
    if execution.cause is not Cause.SCHEDULE:
        return None
    if not job.enabled:
        return Skip(SkipReason.DISABLED, "the job is disabled")
    if job.paused:
        return Skip(SkipReason.PAUSED, "the job is paused")
    return None


def _too_late(job: Job, execution: Execution, now: datetime) -> Skip | None:
    """What was planned in time but found no worker within the grace is a misfire as well."""
    fresh = execution.cause is Cause.SCHEDULE and not execution.admitted and execution.wait_reason is None
    if not fresh or job.misfire.catch_up is not CatchUp.NONE or _good_at_any_time(job, execution):
        return None
    # What was already late when it was planned is not judged again for that: planning said that it fires.
    since = max(execution.available_at or now, execution.created_at)
    if now - since <= job.misfire.grace:
        return None
    late, grace = (now - since).total_seconds(), job.misfire.grace.total_seconds()
    return Skip(SkipReason.MISFIRE, f"no worker took it for {late:.0f} s, the grace is {grace:g} s")


def _depending(job: Job, execution: Execution, facts: AdmitFacts) -> Skip | Wait | None:
    if not job.depends_on or execution.admitted or execution.cause in _ASKED_FOR:
        return None
    known = {parent.job_id for parent in facts.parents}
    if unknown := [parent for parent in job.depends_on if parent not in known]:
        return Wait(WaitReason.DEPENDENCY, f"depends on a job that does not exist: {', '.join(unknown)}")
    verdict = readiness(facts.parents, covers_from=execution.covers_from, last_run_at=job.last_run_at)
    match verdict:
        case Ready():
            return None
        case Waiting(names):
            return Wait(WaitReason.DEPENDENCY, f"waits for a success of {', '.join(names)}")
        case Broken(name):
            if _only_link(job, execution):
                return Wait(WaitReason.DEPENDENCY, f"waits for a success of {name}, which failed")
            return Skip(SkipReason.DEPENDENCY, f"{name} did not succeed for this period")
        case _:
            assert_never(verdict)


def _overlapping(job: Job, execution: Execution, facts: AdmitFacts) -> Verdict | None:
    policy = job.overlapping
    if policy.overlap is Overlap.ALLOW or facts.running < policy.max_instances:
        return None
    words = f"{facts.running} of at most {policy.max_instances} already running"
    if _must_not_skip(job, execution):
        return Wait(WaitReason.OVERLAP, words)
    match policy.overlap:
        case Overlap.SKIP:
            return Skip(SkipReason.OVERLAP, words)
        case Overlap.QUEUE:
            return Wait(WaitReason.OVERLAP, words)
        case Overlap.QUEUE_ONE:
            if facts.waiting_for_turn and execution.wait_reason is not WaitReason.OVERLAP:
                return Skip(SkipReason.OVERLAP, f"{words}, and another one waits")
            return Wait(WaitReason.OVERLAP, words)
        case Overlap.REPLACE:
            return Replace(facts.running_ids[: facts.running - policy.max_instances + 1])
        case _:
            assert_never(policy.overlap)


def _must_not_skip(job: Job, execution: Execution) -> bool:
    return execution.admitted or execution.cause is Cause.BACKFILL or _only_link(job, execution)


def _good_at_any_time(job: Job, execution: Execution) -> bool:
    return isinstance(job.timing.schedule, Immediate) or _only_link(job, execution)


def _only_link(job: Job, execution: Execution) -> bool:
    """The end of a fixed-delay run is what makes the next one due: skipping one would end the chain."""
    return execution.cause is Cause.SCHEDULE and is_fixed_delay(job.timing)
