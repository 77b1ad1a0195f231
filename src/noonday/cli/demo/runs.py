"""What a job of the demonstration has lived through: plausible runs at the times its schedule gives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice, takewhile
from typing import Final

from noonday.cli.demo.fleet import Member
from noonday.domain.execution import Attempt, Cause, Execution, ExecutionId, ExecutionState
from noonday.domain.job import Job
from noonday.domain.lapses import lapses_of
from noonday.domain.occurrences import Occurrence, occurrences, open_times
from noonday.domain.outcome import NOTHING, Result, Usage
from noonday.domain.schedule import Event, Interval, Manual
from noonday.domain.target import CommandTarget, FetchTarget, ServiceTarget
from noonday.ids import new_id
from noonday.store.past import Ran
from noonday.store.records import lapsed, road_of

__all__ = ["Past"]

SINCE: Final = timedelta(days=8)
_MOST: Final = 700  # runs of one job
_WITH_OUTPUT: Final = 6  # of the newest
_INSTANCES: Final = ("noonday-1", "noonday-2", "noonday-3")
_PEOPLE: Final = ("ada", "kofi", "mei", "noor")
_STACK: Final = (
    "Traceback (most recent call last):\n"
    '  File "/srv/{service}/jobs.py", line {line}, in run\n'
    "    answer = await client.send(batch)\n"
    '  File "/srv/{service}/client.py", line 88, in send\n'
    "    raise UpstreamError(answer)\n"
    "UpstreamError: {error}\n"
)


Chance = Callable[[str], float]


def chance(*key: object) -> float:
    """0..1, always the same for the same key."""
    digest = sha256("\0".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


@dataclass(slots=True, kw_only=True)
class Past:
    """Up to `now`. Jobs are told in order, so that those which follow others find how these ended."""

    now: datetime
    _ends: dict[str, list[datetime]] = field(default_factory=dict)  # of good runs, by the job's id

    def lived(self, member: Member, job: Job) -> tuple[Sequence[Ran], datetime | None]:
        """Its runs in order of time, and when it runs next."""
        ran = self._ran(member, job)
        number = 0
        for place, one in enumerate(ran):
            if one.execution.state is not ExecutionState.SKIPPED:
                number += 1
                output = _output(member, one) if place >= len(ran) - _WITH_OUTPUT else ""
                ran[place] = replace(one, execution=replace(one.execution, number=number), output=output)
        self._ends[job.id] = [
            one.execution.completed_at
            for one in ran
            if one.execution.state is ExecutionState.COMPLETED and one.execution.completed_at
        ]
        return ran, self._next(job)

    def _ran(self, member: Member, job: Job) -> list[Ran]:
        runs = (self._run(member, job, *moment) for moment in deque(self._moments(job), maxlen=_MOST))
        made = [run for run in runs if run.execution.completed_at and run.execution.completed_at < self.now]
        if job.timing.availability.limited and job.enabled:
            judged = takewhile(lambda one: one.due_at < self.now, self._occurrences(job))
            found = lapses_of(list(islice(judged, 20 * _MOST)))
            made += [Ran(execution=lapsed(job, lapse, lapse.through_at)) for lapse in found]
        return sorted(made, key=lambda one: one.execution.scheduled_for)

    def _moments(self, job: Job) -> Iterator[tuple[Cause, Occurrence]]:
        schedule, since = job.timing.schedule, self.now - SINCE
        if job.on_success_of:
            for end in self._ends.get(job.on_success_of[0], ()):
                yield Cause.UPSTREAM, _at(end)
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
            created_at=due.due_at,
        )
        hopeless = by_chance("hopeless") < member.fails / 2 or self._in_trouble(member, due.due_at)
        tries: list[Attempt] = []
        for number in range(1, job.retry.max_retries + 2):
            failed = hopeless or by_chance("fails", number) < member.fails
            took = timedelta(seconds=self._seconds(member, due.due_at, by_chance("took", number), failed))
            result = NOTHING if failed else _result(member, job, by_chance)
            tries.append(
                Attempt(
                    execution_id=run.id,
                    number=number,
                    outcome="failed" if failed else "completed",
                    started_at=begun,
                    completed_at=begun + took,
                    instance_id=_INSTANCES[int(by_chance("where", number) * 3)],
                    error=member.error if failed else None,
                    stack=_stack(member, job) if failed else None,
                    result=result,
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
        return taken * 0.3 if failed else taken

    def _next(self, job: Job) -> datetime | None:
        schedule = job.timing.schedule
        if isinstance(schedule, Interval) and schedule.after_completion:
            return self.now + schedule.every / 3
        return next(open_times(job.timing, job.id, self.now), None)


def _at(moment: datetime) -> Occurrence:
    return Occurrence(due_at=moment, available_at=moment)


def _office_hours(name: str, since: datetime, until: datetime) -> Iterator[datetime]:
    hours = int((until - since) / timedelta(hours=1))
    for hour in range(hours):
        start = since + timedelta(hours=hour)
        busy = start.weekday() < 5 and 7 <= start.hour < 18
        for place in range(int(chance(name, start, "how many") * (7 if busy else 1.4))):
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


def _result(member: Member, job: Job, by_chance: Chance) -> Result:
    usage = Usage(
        cpu_time_ms=int(member.seconds * 90 * (1 + by_chance("cpu"))),
        memory_peak_mb=round(40 + 200 * by_chance("memory"), 1),
    )
    if isinstance(job.target, FetchTarget):
        return Result(status_code=200, bytes_received=int(4000 + 60000 * by_chance("bytes")))
    if isinstance(job.target, CommandTarget):
        return Result(exit_code=0, usage=usage, output_tail=f"all {member.items or 1} parts done")
    items = int(member.items * (0.8 + 0.4 * by_chance("items")))
    lost = int(items * 0.01 * by_chance("lost"))
    return Result(
        items_processed=items, items_succeeded=items - lost, items_failed=lost, status_code=200, usage=usage
    )


def _stack(member: Member, job: Job) -> str | None:
    if not isinstance(job.target, ServiceTarget):
        return None
    return _STACK.format(service=job.target.service, line=40 + len(member.name), error=member.error)


def _output(member: Member, one: Ran) -> str:
    """What a program wrote."""
    if member.body["target"]["type"] != "command":
        return ""
    count = max(member.items % 100, 12)
    lines = [f"part {number} of {count}: done" for number in range(1, count + 1)]
    if one.execution.state is ExecutionState.FAILED:
        lines = [*lines[: count // 2], f"\x1b[31merror:\x1b[0m {member.error}"]
    else:
        lines.append(f"\x1b[32mall {count} parts done\x1b[0m")
    return "\n".join(lines) + "\n"
