"""What a job of the demonstration has lived through: plausible runs at the times its schedule gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

from noonday.cli.demo.fleet import Member
from noonday.cli.demo.telling import chance, output, result, stack
from noonday.domain.execution import Attempt, Cause, Execution, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job, Overlap
from noonday.domain.lapses import lapses_of
from noonday.domain.occurrences import Occurrence, occurrences, open_times
from noonday.domain.outcome import NOTHING
from noonday.domain.plans import Lapse
from noonday.domain.schedule import Event, Interval, Manual
from noonday.ids import new_id
from noonday.store.past import Ran
from noonday.store.records import lapsed, road_of

__all__ = ["Past"]

SINCE: Final = timedelta(days=7, hours=2)
_WITH_OUTPUT: Final = 6  # of the newest
_WITH_DELIVERY: Final = 40
_INSTANCES: Final = ("noonday-1", "noonday-2", "noonday-3")
_PEOPLE: Final = ("ada", "kofi", "mei", "noor")


@dataclass(slots=True, kw_only=True)
class Past:
    """Up to `now`. Jobs are told in order, so that those which follow others find how these ended."""

    now: datetime
    _ends: dict[str, list[Occurrence]] = field(default_factory=dict)  # of good runs, by the job's id

    def lived(self, member: Member, job: Job) -> tuple[Sequence[Ran], datetime | None]:
        """Its runs in order of time, and when it runs next."""
        ran = self._ran(member, job)
        number = 0
        for place, one in enumerate(ran):
            if one.execution.state is not ExecutionState.SKIPPED:
                number += 1
                run = replace(one.execution, number=number)
                words = output(member, run) if place >= len(ran) - _WITH_OUTPUT else ""
                came = _path(job, run) if place >= len(ran) - _WITH_DELIVERY else None
                ran[place] = replace(one, execution=run, output=words, path=came)
        self._ends[job.id] = [
            Occurrence(due_at=one.execution.scheduled_for, available_at=one.execution.completed_at)
            for one in ran
            if one.execution.state is ExecutionState.COMPLETED and one.execution.completed_at
        ]
        return ran, self._next(job)

    def _ran(self, member: Member, job: Job) -> list[Ran]:
        moments = sorted(self._moments(job), key=lambda moment: moment[1].due_at)
        runs = _one_at_a_time(job, [self._run(member, job, *moment) for moment in moments])
        made = [run for run in runs if run.execution.completed_at and run.execution.completed_at < self.now]
        if job.timing.availability.limited and job.enabled:
            judged = takewhile(lambda one: one.due_at < self.now, self._occurrences(job))
            made += [_skipped(job, lapse) for lapse in lapses_of(list(judged))]
        return sorted(made, key=lambda one: one.execution.scheduled_for)

    def _moments(self, job: Job) -> Iterator[tuple[Cause, Occurrence]]:
        schedule, since = job.timing.schedule, self.now - SINCE
        if job.on_success_of:
            yield from ((Cause.UPSTREAM, end) for end in self._ends.get(job.on_success_of[0], ()))
        elif isinstance(schedule, Event):
            yield from ((Cause.TRIGGER, _at(moment)) for moment in _office_hours(job.name, since, self.now))
        elif isinstance(schedule, Manual):
            yield from ((Cause.MANUAL, _at(self.now - timedelta(hours=ago))) for ago in (150, 71, 26))
        elif isinstance(schedule, Interval) and schedule.after_completion:
            steps = range(int(SINCE / schedule.every / 1.1))
            yield from ((Cause.SCHEDULE, _at(since + step * 1.1 * schedule.every)) for step in steps)
        elif job.enabled:
            yield from self._scheduled(job)

    def _scheduled(self, job: Job) -> Iterator[tuple[Cause, Occurrence]]:
        for due in takewhile(lambda one: one.due_at < self.now, self._occurrences(job)):
            if due.skip is None:
                yield Cause.SCHEDULE, due
            if chance(job.name, due.due_at, "by hand") < 0.004:
                yield Cause.MANUAL, _at(due.due_at + timedelta(minutes=2, seconds=11))

    def _occurrences(self, job: Job) -> Iterator[Occurrence]:
        return occurrences(job.timing, job.id, self.now - SINCE)

    def _run(self, member: Member, job: Job, cause: Cause, due: Occurrence) -> Ran:
        def by_chance(word: str, attempt: int = 0) -> float:
            return chance(member.name, due.due_at, word, attempt)

        begun = due.available_at + timedelta(milliseconds=15 + 120 * by_chance("late"))
        if by_chance("very late") < 0.01:
            begun += timedelta(seconds=4 + 50 * by_chance("how late"))
        run = Execution(
            id=ExecutionId(new_id(due.due_at)),
            job_id=job.id,
            cause=cause,
            scheduled_for=due.due_at,
            available_at=None,
            state=ExecutionState.RUNNING,
            lane=job.lane,
            road=road_of(job),
            created_at=due.available_at if cause is Cause.UPSTREAM else due.due_at,
        )
        hopeless = by_chance("hopeless") < member.fails / 2 or self._in_trouble(member, due.due_at)
        tries: list[Attempt] = []
        for number in range(1, job.retry.max_retries + 2):
            failed = hopeless or by_chance("fails", number) < member.fails
            took = timedelta(seconds=self._seconds(member, due.due_at, by_chance("took", number), failed))
            brought = NOTHING if failed else result(member, job, by_chance)
            tries.append(
                Attempt(
                    execution_id=run.id,
                    number=number,
                    outcome="failed" if failed else "completed",
                    started_at=begun,
                    completed_at=begun + took,
                    instance_id=_INSTANCES[int(by_chance("where", number) * 3)],
                    error=member.error if failed else None,
                    stack=stack(member, job) if failed else None,
                    result=brought,
                )
            )
            if not failed:
                break
            begun += took + job.retry.backoff * number
        return Ran(execution=_ended(run, tries, by_chance("who")), attempts=tuple(tries))

    def _in_trouble(self, member: Member, due: datetime) -> bool:
        return member.trouble is not None and due > self.now - member.trouble

    def _seconds(self, member: Member, due: datetime, roll: float, failed: bool) -> float:
        """Most take about as long as usual, a few much longer."""
        taken = member.seconds * math.exp((roll - 0.5) * 0.8) * (2.2 if roll > 0.97 else 1)
        if member.slower:
            taken *= 1.6 - (self.now - due) / SINCE * 0.7
        if chance(member.name, due, "stuck") < member.stuck:
            taken *= 30
        return taken * 0.3 if failed else taken

    def _next(self, job: Job) -> datetime | None:
        schedule = job.timing.schedule
        if isinstance(schedule, Interval) and schedule.after_completion:
            return self.now + schedule.every / 3
        return next(open_times(job.timing, job.id, self.now), None)


def _one_at_a_time(job: Job, runs: Sequence[Ran]) -> Iterator[Ran]:
    """As the job wants it: what is due while another run goes on is skipped, or both go on."""
    free_at = datetime.min.replace(tzinfo=UTC)
    for one in runs:
        run = one.execution
        if job.overlapping.overlap is not Overlap.ALLOW and run.scheduled_for < free_at:
            if run.cause is Cause.SCHEDULE:
                due = run.scheduled_for
                words = "1 of at most 1 already running"
                reason = SkipReason.OVERLAP
                yield _skipped(
                    job, Lapse(scheduled_for=due, through_at=due, count=1, reason=reason, detail=words)
                )
            continue
        free_at = run.completed_at or free_at
        yield one


def _skipped(job: Job, lapse: Lapse) -> Ran:
    return Ran(execution=lapsed(job, lapse, lapse.through_at))


def _path(job: Job, run: Execution) -> str | None:
    """Of the call that started it."""
    if run.cause is not Cause.TRIGGER or job.trigger.webhook is None:
        return None
    return job.trigger.webhook.replace("*", str((run.config or {})["upload"]))


def _at(moment: datetime) -> Occurrence:
    return Occurrence(due_at=moment, available_at=moment)


def _office_hours(name: str, since: datetime, until: datetime) -> Iterator[datetime]:
    hours = int((until - since) / timedelta(hours=1))
    for hour in range(hours):
        start = since + timedelta(hours=hour)
        busy = start.weekday() < 5 and 7 <= start.hour < 18
        for place in range(int(chance(name, start, "how many") * (9 if busy else 1.4))):
            yield start + timedelta(minutes=60 * chance(name, start, place))


def _ended(run: Execution, tries: Sequence[Attempt], who: float) -> Execution:
    last = tries[-1]
    good = last.outcome == "completed"
    return replace(
        run,
        state=ExecutionState.COMPLETED if good else ExecutionState.FAILED,
        triggered_by=_PEOPLE[int(who * 4)] if run.cause is Cause.MANUAL else None,
        config={"upload": f"{int(who * 90000) + 10000}"} if run.cause is Cause.TRIGGER else None,
        attempt=last.number,
        failures=len(tries) - good,
        instance_id=last.instance_id,
        claimed_at=last.started_at,
        started_at=last.started_at,
        completed_at=last.completed_at,
        error=last.error,
        stack=last.stack,
        result=last.result,
    )
