"""From a snapshot back to the job: every kind of schedule and target comes back as it was."""

from __future__ import annotations

import json
from datetime import UTC, date, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.control.restoring import built
from noonday.control.snapshots import plain
from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.job import (
    CatchUp,
    Job,
    JobId,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    Retention,
    RetryPolicy,
    Trigger,
)
from noonday.domain.schedule import (
    Cron,
    Event,
    Frequency,
    Immediate,
    Interval,
    IntervalUnit,
    Manual,
    Once,
    Schedule,
)
from noonday.domain.target import (
    CommandTarget,
    FetchTarget,
    HttpTarget,
    PythonTarget,
    ServiceTarget,
    Target,
)
from tests.factories import NOON, a_job, a_timing, an_id


def there_and_back(job: Job) -> Any:
    return built(Job, json.loads(json.dumps(plain(job))))


@pytest.mark.parametrize(
    "schedule",
    [
        Cron(expression="H * * * *"),
        Interval(count=6, unit=IntervalUnit.HOURS, after_completion=True),
        Frequency(frequency="monthly", day_of_month=31, hour=2),
        Immediate(),
        Once(run_at=NOON),
        Event(),
        Manual(),
    ],
)
def test_schedules(schedule: Schedule) -> None:
    job = a_job(schedule=schedule)
    assert there_and_back(job) == job


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget(url="https://a.test", headers={"X-A": "b"}, body={"a": [1]}, expected_status=(200, 204)),
        ServiceTarget(service="email", endpoint="/run"),
        FetchTarget(url="https://a.test"),
        PythonTarget(task="a:b", args=(1, "two", None), kwargs={"x": {"y": 1}}),
        CommandTarget(argv=("ls", "-l"), env={"A": "b"}, memory_mb=10),
    ],
)
def test_targets(target: Target) -> None:
    job = a_job(target=target)
    assert there_and_back(job) == job


def test_everything_else() -> None:
    windows = (Window(days=frozenset({1, 5}), start=time(9), end=time(17, 30)),)
    calendar = Calendar(excluded_dates=frozenset({date(2027, 12, 24)}), holidays_of="DE-BY")
    availability = Availability(windows=windows, calendar=calendar, outside=Outside.MOVE)
    job = a_job(
        timing=a_timing(
            availability=availability,
            timezone="Europe/Berlin",
            start_at=NOON,
            end_at=NOON + timedelta(days=1),
            max_runs=3,
            jitter=timedelta(seconds=1.5),
        ),
        tags=("a", "b"),
        config={"deep": [{"er": None}]},
        lane=Lane.HIGH,
        timeout=timedelta(minutes=1),
        misfire=MisfirePolicy(grace=timedelta(1), coalesce=False, catch_up=CatchUp.ALL),
        overlapping=OverlapPolicy(max_instances=3, overlap=Overlap.QUEUE),
        retry=RetryPolicy(backoff=timedelta(seconds=0.25), jitter=True, on_lost=OnLost.FAIL),
        trigger=Trigger(webhook="/a/*"),
        retention=Retention(runs=5),
        depends_on=(JobId(an_id()),),
        last_status="failed",
        last_run_at=NOON,
    )
    assert there_and_back(job) == job


@given(
    config=st.dictionaries(
        st.text(max_size=5), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4)
    ),
    timeout=st.timedeltas(timedelta(), timedelta(days=1000)),
    at=st.datetimes(timezones=st.just(UTC)),
    tags=st.lists(st.text()).map(tuple),
)
def test_any_value(config: dict[str, Any], timeout: timedelta, at: Any, tags: tuple[str, ...]) -> None:
    job = a_job(config=config, timeout=timeout, schedule=Once(run_at=at), tags=tags)
    assert there_and_back(job) == job
