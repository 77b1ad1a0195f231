"""Invariants of a world that has come to rest: what its history says, against what really happened."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

from sqlalchemy import select

from noonday.domain.execution import (
    Attempt,
    Cause,
    Execution,
    ExecutionState,
    SkipReason,
    WaitReason,
    successful_attempt,
)
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import CatchUp, Job, OnLost, Overlap
from noonday.domain.occurrences import times
from noonday.domain.schedule import Immediate, Interval, Once
from noonday.domain.settling import MAX_LOSSES
from noonday.domain.wallclock import TICK
from noonday.store import executions as executions_store
from noonday.store import jobs as jobs_store
from noonday.store.execution_rows import COLUMNS, read_attempt, read_execution
from noonday.store.executions import ClaimOrder
from noonday.store.tables import PENDING
from noonday.store.tables import attempts as attempts_table
from noonday.store.tables import executions as executions_table
from tests.simulation.bodies import Body
from tests.simulation.universe import START
from tests.simulation.world import Stretch, World

_BUSY = timedelta(seconds=1)
FAR = datetime.max.replace(tzinfo=UTC)
_LATE = timedelta(seconds=8)  # an ending waits for a store that is away


@dataclass(slots=True)
class Rows:
    """Everything that the database says in the end."""

    jobs: dict[str, Job]
    executions: list[Execution]
    attempts: dict[str, list[Attempt]]

    def of(self, job: Job) -> list[Execution]:
        return [one for one in self.executions if one.job_id == job.id]


def read(world: World) -> Rows:
    with world.store.conn.begin():
        conn = world.store.conn
        jobs = {job_id: jobs_store.resolve(conn, job_id) for job_id in world.jobs}
        query = select(*COLUMNS).order_by(executions_table.c.scheduled_for, executions_table.c.id)
        executions = [read_execution(row) for row in conn.execute(query).all()]
        attempts: dict[str, list[Attempt]] = defaultdict(list)
        ordered = select(attempts_table).order_by(attempts_table.c.number)
        for row in conn.execute(ordered).mappings():
            made = read_attempt(row)
            attempts[made.execution_id].append(made)
        for one in executions:
            if (success := successful_attempt(one)) is not None:
                attempts[one.id].append(success)
    return Rows(jobs, executions, attempts)


def check(world: World, rows: Rows, calm_since: float) -> Iterator[str]:
    """All that is wrong, in words."""
    for job in rows.jobs.values():
        mine = rows.of(job)
        yield from _accounted(world, job, mine)
        yield from _reasons(world, job, mine, rows, calm_since)
        yield from _held_back(world, job, mine)
        yield from _at_rest(job, mine)
        for row in mine:
            yield from _ended(world, job, row, rows.attempts[row.id])
    yield from _nobody_waits_in_vain(world)
    yield from _true(world, rows)
    yield from _on_time(world, rows, calm_since)
    if len(world.road):
        yield f"{len(world.road)} messages are left on the road"


def name(job: Job, row: Execution) -> str:
    due = (row.scheduled_for - START).total_seconds()
    return f"{job.name} of {due:g} ({row.cause}, {row.state})"


# Every due time is accounted for


def _accounted(world: World, job: Job, mine: Sequence[Execution]) -> Iterator[str]:
    planned = [row for row in mine if row.cause is Cause.SCHEDULE]
    slots = [(row.scheduled_for, row.cause) for row in mine]
    for slot in {slot for slot in slots if slots.count(slot) > 1}:
        yield f"{job.name}: two rows for the slot {slot}"
    if is_fixed_delay(job.timing):
        yield from _chain(world, job, planned)
        return
    if isinstance(job.timing.schedule, Immediate):
        yield from _just_once(world, job, planned)
        return
    due = expected(job, world.stretches[job.id])
    runs = {row.scheduled_for for row in planned if row.skipped_count == 0}
    lapses = [row for row in planned if row.skipped_count]
    for instant in due:
        covering = (instant in runs) + sum(
            row.scheduled_for <= instant <= (row.through_at or row.scheduled_for) for row in lapses
        )
        if covering != 1:
            yield f"{job.name}: what was due at {_seconds(instant):g} stands in {covering} rows"
    for row in planned:
        if row.scheduled_for not in due:
            yield f"{name(job, row)}: nothing was due then"
    counted = len(runs) + sum(row.skipped_count for row in lapses)
    if counted != len(due):
        yield f"{job.name}: {len(due)} times were due, the rows tell of {counted}"


def expected(job: Job, stretches: Sequence[Stretch]) -> list[datetime]:
    """The raw instants of the job: of each timing, those that fell into its time."""
    if isinstance(job.timing.schedule, Once):
        return [job.timing.schedule.run_at]
    due: list[datetime] = []
    ends = [*(START + timedelta(seconds=after.since) for after in stretches[1:]), None]
    for stretch, until in zip(stretches, ends, strict=True):
        since = START + timedelta(seconds=stretch.since)
        last = min(filter(None, (until, stretch.timing.end_at)))
        due += takewhile(lambda at, last=last: at <= last, times(stretch.timing, job.id, since))  # type: ignore[misc]
    return due


def _just_once(world: World, job: Job, planned: Sequence[Execution]) -> Iterator[str]:
    """Of an immediate job: due when it was created, and once more if it was resumed before it had begun."""
    anchors = {stretch.timing.anchor_at for stretch in world.stretches[job.id]}
    runs = [row for row in planned if row.skipped_count == 0]
    if not planned or len(runs) > 1 or not {row.scheduled_for for row in planned} <= anchors:
        yield f"{job.name}: was to run once, and stands in {len(planned)} rows, {len(runs)} of them runs"


def _chain(world: World, job: Job, planned: Sequence[Execution]) -> Iterator[str]:
    """Of a fixed delay: each run follows on the end of the one before, to the end of the schedule."""
    schedule = job.timing.schedule
    assert isinstance(schedule, Interval)
    runs = [row for row in planned if row.state is not ExecutionState.SKIPPED]
    for before, after in pairwise(runs):
        if before.completed_at is None or after.scheduled_for < before.completed_at:
            yield f"{name(job, after)}: due before the end of the run before it"
    if len(world.stretches[job.id]) > 1:
        return
    ends_at = job.timing.end_at
    last = planned[-1] if planned else None
    if last is None:
        yield f"{job.name}: its chain never began"
    elif (
        last.completed_at is not None and ends_at is not None and last.completed_at + schedule.every < ends_at
    ):
        yield f"{job.name}: its chain ended with {name(job, last)}"


# Nothing is skipped without a reason that the policy allows


def _reasons(world: World, job: Job, mine: Sequence[Execution], rows: Rows, calm: float) -> Iterator[str]:
    for row in mine:
        if row.state is ExecutionState.SKIPPED and not _allowed(world, job, row, mine, rows, calm):
            yield f"{name(job, row)}: may not be skipped for {row.skip_reason}: {row.detail}"


def _allowed(
    world: World, job: Job, row: Execution, mine: Sequence[Execution], rows: Rows, calm: float
) -> bool:
    through = row.through_at or row.scheduled_for
    match row.skip_reason:
        case SkipReason.MISFIRE:
            judged_at = row.completed_at or row.created_at
            late = judged_at - through
            return job.misfire.catch_up is CatchUp.NONE and late > job.misfire.grace
        case SkipReason.COALESCED:
            one_for_all = job.misfire.coalesce or job.misfire.catch_up is CatchUp.LATEST
            later = any(one.scheduled_for > through for one in mine if one.cause is Cause.SCHEDULE)
            return one_for_all and later and row.created_at - through >= _BUSY
        case SkipReason.OVERLAP:
            skips = job.overlapping.overlap in {Overlap.SKIP, Overlap.QUEUE_ONE}
            return skips and _busy_at(row, mine, rows, _LATE if _seconds(row.scheduled_for) < calm else _BUSY)
        case SkipReason.PAUSED:
            return any(through < end for _, end in rests(world.stretches[job.id]))
        case SkipReason.SKIPPED:
            return (job.id, row.scheduled_for) in world.skipped
        case SkipReason.EDITED:
            return len(world.stretches[job.id]) > 1
        case SkipReason.DEPENDENCY:
            return bool(job.depends_on)
        case _:
            return False


def rests(stretches: Sequence[Stretch]) -> Iterator[tuple[datetime, datetime]]:
    """When people let the job rest: from then, until before then."""
    ends = [*(START + timedelta(seconds=after.since) + TICK for after in stretches[1:]), FAR]
    for stretch, end in zip(stretches, ends, strict=True):
        if stretch.resting:
            yield START + timedelta(seconds=stretch.since), min(end, stretch.until or end)


def _held_back(world: World, job: Job, mine: Sequence[Execution]) -> Iterator[str]:
    """What was due while the job rested did not run; a single run may, it is good within its grace."""
    if isinstance(job.timing.schedule, Once | Immediate):
        return
    held = list(rests(world.stretches[job.id]))
    ran = [one for one in mine if one.cause is Cause.SCHEDULE and one.state is not ExecutionState.SKIPPED]
    for row in ran:
        if any(since < row.scheduled_for < end for since, end in held):
            yield f"{name(job, row)}: was due while the job was paused, and ran"


def _busy_at(row: Execution, mine: Sequence[Execution], rows: Rows, settled_within: timedelta) -> bool:
    """Did another run go on then? One that had ended may still have waited for its ending to be stored."""
    at = row.completed_at
    assert at is not None
    for other in mine:
        for attempt in rows.attempts[other.id]:
            began, ended = attempt.started_at, attempt.completed_at
            if began is not None and began - _BUSY <= at <= ended + settled_within:
                return True
    return False


# Nothing is stuck, nothing is tried more often than allowed


def _at_rest(job: Job, mine: Sequence[Execution]) -> Iterator[str]:
    for row in mine:
        waits = row.wait_reason is WaitReason.DEPENDENCY and row.available_at is None
        if row.state.open and not waits:
            yield f"{name(job, row)}: is stuck: {row.wait_reason}, {row.detail}, until {row.lease_expires_at}"
    if job.state == "running":
        yield f"{job.name}: is said to run, and nothing of it runs"


def _nobody_waits_in_vain(world: World) -> Iterator[str]:
    """Whoever still waits does so for what has not come: judged anew, it would have to wait again."""
    conn, now = world.store.conn, world.universe.now
    waiting = select(executions_table.c.id).where(PENDING, executions_table.c.available_at.is_(None))
    with conn.begin() as only_asked:
        before = set(conn.execute(waiting).scalars())
        executions_store.rearm_waiting(conn, now)
        executions_store.claim(conn, ClaimOrder(instance_id="nobody", limit=100, now=now, lease=_BUSY))
        missed = before - set(conn.execute(waiting).scalars())
        only_asked.rollback()
    if missed:
        yield f"{len(missed)} executions wait for what has come already"


def _ended(world: World, job: Job, row: Execution, tries: Sequence[Attempt]) -> Iterator[str]:
    if row.state.open:
        return
    if [one.number for one in tries] != list(range(1, row.attempt + 1)):
        yield f"{name(job, row)}: has {row.attempt} attempts, kept are {[one.number for one in tries]}"
    failed = sum(one.outcome in {"failed", "timed_out"} for one in tries)
    lost = sum(one.outcome == "lost" for one in tries)
    if failed > job.retry.max_retries + 1 or lost > MAX_LOSSES:
        yield f"{name(job, row)}: failed {failed} times and was lost {lost} times"
    spent = failed > job.retry.max_retries or lost >= MAX_LOSSES
    if job.retry.on_lost is OnLost.FAIL:
        spent = spent or lost > 0
    if row.state is ExecutionState.FAILED and not spent:
        yield f"{name(job, row)}: was given up too early: {row.error}"
    replaced = job.overlapping.overlap is Overlap.REPLACE
    if row.state is ExecutionState.CANCELLED and not (replaced or row.id in world.cancelled):
        yield f"{name(job, row)}: was cancelled by nobody: {row.detail}"


# The record is what happened


def _true(world: World, rows: Rows) -> Iterator[str]:
    bodies: dict[str, dict[int, Body]] = defaultdict(dict)
    for body in world.bodies:
        bodies[body.execution_id][body.attempt] = body
    known = {row.id: row for row in rows.executions}
    for row in rows.executions:
        job = rows.jobs[row.job_id]
        tries = {one.number: one for one in rows.attempts[row.id]}
        if row.state is ExecutionState.COMPLETED:
            last = bodies[row.id].get(row.attempt)
            if last is None or last.how != "done":
                really = last.how if last else "never run"
                yield f"{name(job, row)}: is said to be completed, but was {really}"
        for number, body in bodies[row.id].items():
            told = tries[number].outcome if number in tries else "open"
            if told not in _TRUE[body.how] and not body.deaf:
                yield f"{name(job, row)}: attempt {number} {body.how}, the history says {told}"
    for execution_id in bodies.keys() - known.keys():
        yield f"{execution_id} ran, and no row knows of it"


_TRUE = {
    "runs": {"lost"},  # its process was killed
    "killed its process": {"lost"},
    "done": {"completed", "lost"},
    "failed": {"failed", "timed_out", "cancelled", "lost"},
    "stopped": {"timed_out", "cancelled", "released", "lost"},
}


# Once the faults are over, everything is on time


def _on_time(world: World, rows: Rows, calm_since: float) -> Iterator[str]:
    if world.slots < 10:  # others may be in all of them
        return
    began: dict[str, float] = {}
    for body in world.bodies:
        began.setdefault(body.execution_id, body.began)
    for row in rows.executions:
        job = rows.jobs[row.job_id]
        due = _seconds(row.scheduled_for)
        if job.name == "probe" and row.cause is Cause.SCHEDULE and due > calm_since:
            late = began.get(row.id, float("inf")) - due
            if late > 1.0:
                yield f"{name(job, row)}: began {late:.3f} s late though nothing was wrong any more"


def _seconds(instant: datetime) -> float:
    return (instant - START).total_seconds()
