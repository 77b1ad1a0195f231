"""How many runs start in each of the next time slots."""

from __future__ import annotations

from datetime import timedelta

import pytest

from noonday.domain.job import Job
from noonday.domain.outlook import outlook
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from tests.factories import NOON, a_job, a_timing, at

SLOT = timedelta(minutes=10)


def armed(text: str, **changes: object) -> Job:
    return a_job(schedule=Cron(expression=text), **({"next_run_at": NOON} | changes))


def test_it_counts_each_fire_in_its_slot() -> None:
    every_five = armed("*/5 * * * *", next_run_at=NOON + timedelta(minutes=5))
    hourly = armed("30 * * * *", next_run_at=at("2027-01-01T12:30:00Z"))
    assert outlook([every_five, hourly], NOON, SLOT, 6) == [1, 2, 2, 3, 2, 2]


def test_what_is_overdue_starts_in_the_first() -> None:
    assert outlook([armed("0 * * * *", next_run_at=NOON - timedelta(hours=1))], NOON, SLOT, 6) == [
        2,
        0,
        0,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("change", [{"paused": True}, {"enabled": False}, {"next_run_at": None}], ids=str)
def test_a_job_that_rests_starts_nothing(change: dict[str, object]) -> None:
    assert outlook([armed("* * * * *", **change)], NOON, SLOT, 3) == [0, 0, 0]


def test_it_ends_with_the_last_run_that_is_allowed() -> None:
    timing = a_timing(Cron(expression="*/10 * * * *"), max_runs=5)
    job = a_job(timing=timing, next_run_at=NOON, fire_count=3)
    assert outlook([job], NOON, SLOT, 4) == [1, 1, 0, 0]


def test_of_a_fixed_delay_only_the_next_is_known() -> None:
    every = Interval(count=1, unit=IntervalUnit.MINUTES, after_completion=True)
    assert outlook([a_job(schedule=every, next_run_at=NOON)], NOON, SLOT, 3) == [1, 0, 0]


def test_a_fast_job_among_very_many_goes_on_as_it_began() -> None:
    fast = a_job(schedule=Interval(count=1, unit=IntervalUnit.SECONDS), next_run_at=NOON)
    resting = [a_job(paused=True)] * 20_000
    found = outlook([fast, *resting], NOON, SLOT, 6)
    assert found == pytest.approx([600] * 6, rel=0.01)
