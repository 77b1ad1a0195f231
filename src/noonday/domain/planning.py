"""What is due: turns the instants of a job into fires and recorded lapses, and moves its cursor on.

The cursor, `job.next_run_at`, is the next instant not yet planned. Every raw instant that it passes is in
exactly one fire or one lapse, whatever the outage, the policy and the cap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from noonday.domain import misfire
from noonday.domain.execution import SkipReason
from noonday.domain.fixed_delay import (
    arm_fixed_delay,
    is_fixed_delay,
    next_after_completion,
    plan_fixed_delay,
)
from noonday.domain.job import CatchUp, Job
from noonday.domain.lapses import joined, lapses_of, stretch
from noonday.domain.occurrences import (
    CLOSED_FOR,
    CLOSED_IN_A_ROW,
    Occurrence,
    last_until,
    next_after,
    occurrences,
    spread,
    times,
)
from noonday.domain.plans import Facts, Fire, Lapse, Plan, runs_left
from noonday.domain.schedule import Immediate, Interval, Once
from noonday.domain.straight import straight
from noonday.domain.wallclock import EARLIEST, TICK

__all__ = ["Facts", "Fire", "Lapse", "Plan", "arm", "lapse", "next_after_completion", "plan"]


def plan(job: Job, facts: Facts, now: datetime) -> Plan:
    """The fires and lapses from the cursor to `now + lookahead`.

    Where the cap ends it earlier, the new cursor is still within that horizon: the caller calls again.
    """
    cursor = job.next_run_at
    if cursor is None or cursor > now + facts.lookahead or not job.armed:
        return Plan(next_run_at=cursor, fire_count=job.fire_count)
    if runs_left(job) == 0:
        return Plan(next_run_at=None, fire_count=job.fire_count)
    return straight(job, cursor, facts, now) or long_way(job, cursor, facts, now)


def long_way(job: Job, cursor: datetime, facts: Facts, now: datetime) -> Plan:
    """From a cursor that is due, one instant after the other."""
    if is_fixed_delay(job.timing):
        return plan_fixed_delay(job, cursor)
    leap = _leap(job, facts.cap, cursor, now)
    start = cursor if leap is None else next_after(job.timing, job.id, leap.through_at)
    walked = _walk(job, () if start is None else _from(job, start), facts, now)
    return walked if leap is None else replace(walked, lapses=(leap, *walked.lapses))


def arm(job: Job, now: datetime) -> Plan:
    """The cursor of a job that was created, resumed, enabled or edited: fires nothing, does not reach back.

    Two exceptions, for they have but one instant: an immediate job that has not run yet is due at once, and
    a single run in the past is still good within its grace.
    """
    now = max(now, job.skipped_through or now)
    if runs_left(job) == 0:
        return Plan(next_run_at=None, fire_count=job.fire_count)
    if is_fixed_delay(job.timing):
        return Plan(next_run_at=arm_fixed_delay(job, now), fire_count=job.fire_count)
    if isinstance(job.timing.schedule, Immediate | Once):
        return _arm_single(job, now)
    if not job.timing.availability.limited:  # the first instant to come is the one
        return Plan(next_run_at=next_after(job.timing, job.id, now), fire_count=job.fire_count)
    return _walk(job, occurrences(job.timing, job.id, now), Facts(lookahead=timedelta()), now)


def lapse(
    job: Job, first: datetime, last: datetime, reason: SkipReason, detail: str | None = None
) -> Lapse | None:
    """The instants of the job in [first, last] as one lapse; None if there are none."""
    chained = is_fixed_delay(job.timing)
    due = job.next_run_at if chained else next_after(job.timing, job.id, first - TICK)
    if due is None or not first <= due <= last:
        return None
    return stretch(job, due, last, reason, detail)


def _walk(job: Job, stream: Iterable[Occurrence], facts: Facts, now: datetime) -> Plan:
    horizon = now + facts.lookahead
    seen, following = _look(stream, horizon, facts.cap)
    beyond = _next_open(job, following)
    judged, ended = _cut(misfire.judge(job, seen, beyond, now), runs_left(job))
    fires = _fires(job, judged, None if following is None else following.due_at)
    lapses = lapses_of(judged)
    cursor = following
    if ended:
        cursor = None
    elif following is not None and following.due_at > horizon and following is not beyond:
        closed = _closed(job, following, beyond, facts.cap)
        fired_last = bool(judged) and judged[-1].skip is None
        lapses = (*lapses, closed) if fired_last else joined(lapses, closed)
        cursor = beyond
    return Plan(
        fires=fires,
        lapses=lapses,
        next_run_at=None if cursor is None else cursor.due_at,
        fire_count=job.fire_count + len(fires),
    )


def _from(job: Job, start: datetime) -> Iterator[Occurrence]:
    """The occurrences from the cursor on. It is an instant of the job, there is no need to find it again."""
    if job.timing.availability.limited:
        return occurrences(job.timing, job.id, start - TICK)
    instants = chain((start,), times(job.timing, job.id, start))
    return (Occurrence(due_at=due, available_at=due) for due in instants)


def _look(
    stream: Iterable[Occurrence], horizon: datetime, cap: int
) -> tuple[list[Occurrence], Occurrence | None]:
    """The occurrences up to the horizon and skipped ones behind it, at most `cap`; and the one after them."""
    seen: list[Occurrence] = []
    for occurrence in stream:
        if len(seen) == cap or (occurrence.due_at > horizon and occurrence.skip is None):
            return seen, occurrence
        seen.append(occurrence)
    return seen, None


def _next_open(job: Job, here: Occurrence | None) -> Occurrence | None:
    """`here`, or the first after it, that windows and calendar let pass; one step for each closed stretch."""
    if here is None or here.skip is None:
        return here
    since = here.due_at
    for _ in range(CLOSED_IN_A_ROW):
        if here.reopens_at is None or here.reopens_at - since > CLOSED_FOR:
            return None
        here = next(occurrences(job.timing, job.id, here.reopens_at - TICK), None)
        if here is None or here.skip is None:
            return here
    return None


def _cut(judged: Sequence[Occurrence], runs_left: int | None) -> tuple[Sequence[Occurrence], bool]:
    """Nothing is due after the last run that max_runs allows."""
    if runs_left is None:
        return judged, False
    fires = [index for index, occurrence in enumerate(judged) if occurrence.skip is None]
    if len(fires) < runs_left:
        return judged, False
    return judged[: fires[runs_left - 1] + 1], True


def _fires(job: Job, judged: Sequence[Occurrence], following: datetime | None) -> tuple[Fire, ...]:
    return tuple(
        Fire(
            scheduled_for=one.due_at,
            available_at=one.available_at + spread(job.timing, job.id, one.due_at),
            covers_from=judged[index - 1].due_at if index else _previous(job, judged, following),
        )
        for index, one in enumerate(judged)
        if one.skip is None
    )


def _previous(job: Job, judged: Sequence[Occurrence], following: datetime | None) -> datetime:
    """The raw instant before the first one, or the anchor.

    Most schedules keep their step, so it is looked for where it would then be, before a real search.
    """
    timing, due = job.timing, judged[0].due_at
    if due <= timing.anchor_at:
        return due
    after = judged[1].due_at if len(judged) > 1 else following
    if after is not None:
        near = times(timing, job.id, max(due - (after - due) - TICK, timing.anchor_at))
        first, second = next(near, None), next(near, None)
        if first is not None and second == due:
            return first
    return last_until(timing, job.id, due - TICK, since=timing.anchor_at) or timing.anchor_at


def _closed(job: Job, first: Occurrence, opening: Occurrence | None, cap: int) -> Lapse:
    """The rest of a closed stretch behind the horizon, too long to be looked at one by one."""
    assert first.skip is not None
    last = job.timing.end_at if opening is None else opening.due_at - TICK
    return stretch(job, first.due_at, last or first.due_at, first.skip, first.detail, cap)


def _leap(job: Job, cap: int, cursor: datetime, now: datetime) -> Lapse | None:
    """Of a fast interval after a long outage: the instants that surely do not fire, in one counted lapse."""
    timing, policy = job.timing, job.misfire
    if not isinstance(timing.schedule, Interval) or timing.availability.limited:
        return None
    if policy.catch_up is CatchUp.ALL or (now - cursor) // timing.schedule.every <= cap:
        return None
    if policy.catch_up is CatchUp.NONE:
        kept_from = misfire.oldest_in_grace(timing, policy, now)
        reason, detail = SkipReason.MISFIRE, misfire.too_late(policy)
    else:
        newest = last_until(timing, job.id, now - misfire.BUSY - TICK, since=cursor) or cursor
        kept_from = newest
        reason, detail = SkipReason.COALESCED, misfire.covered_by(newest)
    if cursor >= kept_from:
        return None
    return stretch(job, cursor, kept_from - TICK, reason, detail)


def _arm_single(job: Job, now: datetime) -> Plan:
    only = next(occurrences(job.timing, job.id, EARLIEST), None)
    done = max(filter(None, (job.last_run_at, job.skipped_through)), default=None)
    if only is None or (done is not None and done >= only.due_at):
        return Plan(next_run_at=None, fire_count=job.fire_count)
    judged = misfire.judge(job, [only], None, now)
    if judged[0].skip is None:
        return Plan(next_run_at=only.due_at, fire_count=job.fire_count)
    return Plan(lapses=lapses_of(judged), next_run_at=None, fire_count=job.fire_count)
