"""Runs to come by the hour: exact where they can be walked, close where they are guessed."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from noonday.domain.counting import count_by_hour as coming
from noonday.domain.heat import hour_of, level, quietest
from noonday.domain.job import Job
from noonday.domain.load import Load
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from noonday.domain.upcoming import fires
from tests.factories import NOON, a_job, a_timing

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = 7 * DAY
NOW = NOON + timedelta(minutes=20)


def a_cron(text: str, zone: str = "UTC") -> Job:
    return a_job(timing=a_timing(Cron(expression=text), timezone=zone), next_run_at=NOW + HOUR)


def walked(*jobs: Job, until: datetime) -> Counter[datetime]:
    found: Counter[datetime] = Counter()
    for job in jobs:
        for at in fires(job, NOW):
            if at > until:
                break
            found[hour_of(at)] += 1
    return found


@pytest.mark.parametrize("text", ["0 * * * *", "30 7 * * *", "*/15 9-17 * * 1-5", "5 3 * * 0"])
def test_a_week_is_counted_out(text: str) -> None:
    jobs = [a_cron(text), a_cron(text), a_cron(text, "America/New_York")]
    seen = coming(jobs, NOW, NOW + WEEK, {})
    assert seen.starts == walked(*jobs, until=NOW + WEEK)
    assert not seen.rough


def test_a_busy_rhythm_repeats_its_week() -> None:
    job = a_cron("*/5 9-17 * * 1-5")
    until = NOW + 4 * WEEK
    seen, exact = coming([job], NOW, until, {}), walked(job, until=until)
    assert sum(seen.starts.values()) == pytest.approx(sum(exact.values()), rel=0.01)
    weekends = [at for at, count in seen.starts.items() if count and at.isoweekday() > 5]
    assert weekends == []
    assert not seen.rough


@pytest.mark.parametrize(
    ("text", "close", "rough"),
    [("* * * * *", 1e-9, False), ("* 0-22 * * *", 1e-9, False), ("*/20 * 0-22 * * *", 0.1, True)],
)
def test_a_very_busy_job_goes_on_at_its_pace(text: str, close: float, rough: bool) -> None:
    job, until = a_cron(text), NOW + WEEK
    seen = coming([job], NOW, until, {})
    assert sum(seen.starts.values()) == pytest.approx(sum(walked(job, until=until).values()), rel=close)
    assert seen.rough is rough


def test_short_intervals_are_spread_evenly_without_walking() -> None:
    every = Interval(count=10, unit=IntervalUnit.SECONDS)
    jobs = [a_job(schedule=every, next_run_at=NOW + HOUR) for _ in range(50)]
    seen = coming(jobs, NOW, NOW + DAY, {})
    assert seen.starts[NOON + HOUR] == pytest.approx(50 * 360)
    assert seen.starts[NOON] == pytest.approx(50 * 239), "the rest of the hour that has begun"
    assert not seen.rough


def test_busy_time_is_as_long_as_runs_usually_take() -> None:
    one, other = a_cron("0 * * * *"), a_cron("0 * * * *")
    seen = coming([one, other], NOW, NOW + DAY, {one.id: timedelta(minutes=6)})
    assert seen.starts[NOON + HOUR] == 2
    assert seen.busy[NOON + HOUR] == timedelta(minutes=6)


def test_jobs_that_rest_are_not_in_it() -> None:
    paused = a_job(schedule=Cron(expression="0 * * * *"), next_run_at=NOW + HOUR, paused=True)
    fast = a_job(schedule=Interval(count=1), next_run_at=NOW + HOUR, enabled=False)
    assert coming([paused, fast], NOW, NOW + DAY, {}).starts == {}


def test_the_quietest_slots_are_those_with_fewest_starts_and_quiet_neighbours() -> None:
    starts = (0.0, 5.0, 0.0, 5.0, 1.0, 0.0, 0.0, 1.0)
    load = Load(start=NOON, slot=HOUR, starts=starts)
    assert quietest(load, 2) == [(NOON + 5 * HOUR, 0.0), (NOON + 6 * HOUR, 0.0)]
    assert (NOON, 0.0) not in quietest(load, 7), "the slot that has begun"


@pytest.mark.parametrize(
    ("value", "lowest", "peak", "shade"),
    [
        (0, 0, 0, 0),
        (0, 0, 9, 0),
        (1, 0, 100, 1),
        (60, 0, 100, 4),
        (100, 0, 100, 6),
        (100, 100, 105, 5),
        (3, 3, 3, 6),
    ],
)
def test_shades_go_from_nothing_to_the_peak(value: float, lowest: float, peak: float, shade: int) -> None:
    assert level(value, lowest, peak, 6) == shade
