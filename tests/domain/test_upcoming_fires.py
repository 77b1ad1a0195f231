"""When a job will fire: from its cursor, its bounds and what is planned already."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.domain.calendar import Availability, Window
from noonday.domain.job import Job, JobState
from noonday.domain.occurrences import occurrences
from noonday.domain.planning import arm, plan
from noonday.domain.plans import Facts
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Schedule
from noonday.domain.upcoming import fires
from tests.factories import NOON, a_job, a_timing

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def armed(schedule: Schedule, **changes: Any) -> Job:
    job = a_job(timing=a_timing(schedule, **changes.pop("bounds", {})), **changes)
    return replace(job, next_run_at=arm(job, NOON).next_run_at)


def first(job: Job, count: int = 3, now: datetime = NOON, **more: Any) -> list[float]:
    """In minutes from noon."""
    return [(one - NOON) / MINUTE for one in islice(fires(job, now, **more), count)]


def test_it_goes_on_from_now() -> None:
    assert first(armed(Cron(expression="*/5 * * * *"))) == [5, 10, 15]
    assert first(armed(Interval(count=7))) == [7, 14, 21]


def test_it_shows_what_is_planned_but_has_not_run() -> None:
    job = armed(Interval(count=10, unit=IntervalUnit.SECONDS), bounds={"max_runs": 4})
    planned = plan(job, Facts(lookahead=25 * SECOND), NOON)
    job = replace(job, next_run_at=planned.next_run_at, fire_count=planned.fire_count)
    assert len(planned.fires) == 2
    assert [round(minutes * 60) for minutes in first(job, 9)] == [10, 20, 30, 40]


def test_it_begins_with_what_is_overdue() -> None:
    job = armed(Interval(count=5), bounds={"anchor_at": NOON - 60 * MINUTE})
    job = replace(job, next_run_at=NOON - 5 * MINUTE)
    assert first(job) == [-5, 0, 5]
    assert first(job, since=NOON) == [0, 5, 10]
    once = replace(armed(Immediate()), next_run_at=NOON)
    assert first(once, now=NOON + MINUTE) == [0]


def test_it_ends_with_the_last_run() -> None:
    assert first(armed(Interval(count=1), bounds={"max_runs": 2})) == [1, 2]
    spent = replace(armed(Interval(count=1), bounds={"max_runs": 2}), fire_count=2)
    assert first(spent) == []
    assert first(armed(Interval(count=1), bounds={"end_at": NOON + 2 * MINUTE})) == [1, 2]


def test_it_knows_only_the_next_of_a_fixed_delay() -> None:
    job = armed(Interval(count=5, after_completion=True))
    assert first(job) == [5]
    assert first(job, since=NOON + 6 * MINUTE) == []
    assert first(replace(job, next_run_at=None)) == []  # its run is going on


@pytest.mark.parametrize(
    "change", [{"paused": True}, {"enabled": False}, {"state": JobState.CANCELLED}, {"next_run_at": None}]
)
def test_it_expects_nothing_of_a_job_that_rests(change: dict[str, Any]) -> None:
    assert first(replace(armed(Interval(count=5)), **change)) == []


def test_it_looks_far_ahead_without_walking_there() -> None:
    later = NOON + timedelta(days=365)
    fast = armed(Cron(expression="* * * * * *"))
    assert next(fires(fast, NOON, later)) == later
    few = armed(Interval(count=1, unit=IntervalUnit.DAYS), bounds={"max_runs": 10})
    assert list(fires(few, NOON, later)) == []
    assert len(list(fires(few, NOON, NOON + timedelta(days=8)))) == 3


schedules = st.one_of(
    st.builds(Interval, count=st.integers(1, 300)),
    st.sampled_from(["*/7 * * * *", "H * * * *", "30 2 * * *"]).map(lambda text: Cron(expression=text)),
)


@settings(max_examples=50, deadline=None)
@given(
    schedule=schedules,
    most=st.none() | st.integers(1, 20),
    hours=st.integers(0, 30),
    opens=st.none() | st.integers(0, 20),
)
def test_it_fires_what_windows_let_pass_and_no_more(
    schedule: Schedule, most: int | None, hours: int, opens: int | None
) -> None:
    bounds: dict[str, Any] = {"max_runs": most}
    if opens is not None:
        start = NOON.replace(hour=opens).time()
        window = Window(days=frozenset(range(1, 8)), start=start, end=NOON.replace(hour=opens + 3).time())
        bounds["availability"] = Availability(windows=(window,))
    job = armed(schedule, bounds=bounds)
    until, since = NOON + timedelta(days=2), NOON + timedelta(hours=hours)
    stream = takewhile(lambda one: one.due_at <= until, occurrences(job.timing, job.id, NOON))
    wanted = [one.due_at for one in stream if one.skip is None][:most]
    assert list(takewhile(lambda one: one <= until, fires(job, NOON))) == wanted
    if opens is None:
        seen = list(takewhile(lambda one: one <= until, fires(job, NOON, since)))
        assert seen == [one for one in wanted if one >= since]
