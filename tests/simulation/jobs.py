"""Jobs by chance: when they are due, how they are treated, and how their runs behave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from noonday.domain.job import (
    CatchUp,
    Job,
    JobId,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    RetryPolicy,
)
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Once, Schedule, Timing
from noonday.domain.target import PythonTarget
from noonday.ids import new_id
from tests.simulation.bodies import Manner


@dataclass(frozen=True, slots=True)
class Drawn:
    job: Job
    manner: Manner


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def draw_jobs(chance: Random, now: datetime, ends_at: datetime) -> list[Drawn]:
    drawn: list[Drawn] = []
    for number in range(chance.randint(2, 4)):
        job = _job(chance, f"job-{number}", now, ends_at)
        drawn.append(Drawn(_related(chance, job, [one.job for one in drawn]), _manner(chance)))
    return [*drawn, Drawn(_probe(chance, now, ends_at), Manner())]


def _probe(chance: Random, now: datetime, ends_at: datetime) -> Job:
    """Quick and important, with nothing in its way: once the faults are over it has to be on time."""
    schedule = Interval(count=chance.randint(4, 6), unit=IntervalUnit.SECONDS)
    return replace(
        _plain("probe", schedule, now, ends_at),
        lane=Lane.HIGH,
        overlapping=OverlapPolicy(overlap=Overlap.ALLOW),
        scheduler_version=chance.choice([1, 2]),
    )


def _plain(name: str, schedule: Schedule, now: datetime, ends_at: datetime) -> Job:
    return Job(
        id=JobId(new_id(now)),
        name=name,
        timing=Timing(schedule=schedule, anchor_at=now, end_at=ends_at),
        target=PythonTarget(task="body"),
        timeout=seconds(5),
        created_at=now,
        updated_at=now,
    )


def _job(chance: Random, name: str, now: datetime, ends_at: datetime) -> Job:
    job = _plain(name, _schedule(chance, now), now, ends_at)
    return replace(
        job,
        lane=chance.choice(list(Lane)),
        timeout=seconds(chance.choice([2, 5, 8])),
        misfire=MisfirePolicy(
            grace=seconds(chance.choice([0, 3, 10, 300])),
            coalesce=chance.random() < 0.5,
            catch_up=chance.choice(list(CatchUp)),
        ),
        overlapping=OverlapPolicy(
            max_instances=chance.choice([1, 1, 1, 2]), overlap=chance.choice(list(Overlap))
        ),
        retry=RetryPolicy(
            max_retries=chance.randint(0, 3),
            backoff=seconds(chance.choice([0.5, 1, 2])),
            jitter=chance.random() < 0.5,
            on_lost=chance.choice([OnLost.RERUN, OnLost.RERUN, OnLost.RERUN, OnLost.FAIL]),
        ),
        scheduler_version=chance.choice([1, 2, 2]),
    )


def _schedule(chance: Random, now: datetime) -> Schedule:
    count = chance.choice([3, 4, 5, 7, 10, 13])
    match chance.choice(["rate", "rate", "rate", "cron", "delay", "delay", "once", "now"]):
        case "rate":
            return Interval(count=count, unit=IntervalUnit.SECONDS)
        case "cron":
            return Cron(expression=f"*/{count} * * * * *")
        case "delay":
            return Interval(count=min(count, 5), unit=IntervalUnit.SECONDS, after_completion=True)
        case "once":
            return Once(run_at=now + seconds(round(chance.uniform(1, 25), 3)))
        case _:
            return Immediate()


def _related(chance: Random, job: Job, earlier: list[Job]) -> Job:
    """Some wait for the success of another job of the same rhythm, some follow on one."""
    if not earlier or chance.random() < 0.6:
        return job
    parent = chance.choice(earlier)
    if chance.random() < 0.5:
        return replace(job, on_success_of=(parent.id,))
    return replace(job, timing=parent.timing, depends_on=(parent.id,))


def _manner(chance: Random) -> Manner:
    longest = chance.choice([0.0, 0.3, 2.0, 4.0, 6.0])
    manner = Manner(shortest=longest * chance.random(), longest=longest)
    match chance.choice(["good", "good", "fails", "hangs", "deaf", "kills", "mixed"]):
        case "fails":
            return replace(manner, fails=chance.uniform(0.1, 1.0))
        case "hangs":
            return replace(manner, hangs=chance.uniform(0.1, 0.6))
        case "deaf":
            return replace(manner, deaf=chance.uniform(0.1, 0.3))
        case "kills":
            return replace(manner, kills=chance.uniform(0.05, 0.2))
        case "mixed":
            return replace(manner, fails=0.2, hangs=0.1, deaf=0.05, kills=0.02)
        case _:
            return manner
