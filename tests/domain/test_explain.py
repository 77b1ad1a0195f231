"""Schedules in words."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.cron import CronError, check_cron
from noonday.domain.explain import explain
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
    Timing,
)
from tests.domain.timing_oracle import seeded

MADE = datetime(2027, 1, 1, 12, 30, tzinfo=UTC)
OFFICE = Window(days=frozenset(range(1, 6)), start=time(8), end=time(18))


def words(schedule: Schedule, key: str = "job", **more: Any) -> str:
    return explain(Timing(schedule=schedule, **{"anchor_at": MADE, **more}), key)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "Every minute, UTC"),
        ("* * * * * *", "Every second, UTC"),
        ("*/5 * * * *", "Every fifth minute of every hour, UTC"),
        ("*/60 * * * *", "At the start of every hour, UTC"),
        ("0 */24 * * *", "At 00:00 every day, UTC"),
        ("@daily", "At 00:00 every day, UTC"),
        ("@hourly", "At the start of every hour, UTC"),
        ("@weekly", "At 00:00 every Sunday, UTC"),
        ("@yearly", "At 00:00 on January 1, UTC"),
        ("0 2 * * mon", "At 02:00 every Monday, UTC"),
        ("0 2 * * 0,7", "At 02:00 every Sunday, UTC"),
        ("15 30 2 * * *", "At 02:30:15 every day, UTC"),
        ("0 9 * * MON-FRI", "At 09:00 on Monday through Friday, UTC"),
        ("0 9 * * FRI-MON", "At 09:00 on Friday, Saturday, Sunday, and Monday, UTC"),
        ("0 0 21 * *", "At 00:00 on the 21st day of every month, UTC"),
        ("0 0 12,22,31 * *", "At 00:00 on the 12th, the 22nd, and the 31st day of month, UTC"),
        ("0 0 L * *", "At 00:00 on the last day of every month, UTC"),
        ("0 0 LW * *", "At 00:00 on the last weekday of every month, UTC"),
        ("0 0 * * FRI#2", "At 00:00 on the second Friday of the month, UTC"),
        ("0 0 * * FRIL", "At 00:00 on the last Friday of the month, UTC"),
        ("0 0 */2 * MON", "At 00:00 on every second day of month if it is Monday, UTC"),
        ("0 0 13 * FRI", "At 00:00 on the 13th day of month and on Friday, UTC"),
    ],
)
def test_cron(expression: str, expected: str) -> None:
    assert words(Cron(expression=expression)) == expected


def test_cron_says_what_became_of_h() -> None:
    assert words(Cron(expression="H H * * *"), key="job-1") == (
        "At 03:11 every day (H became minute 11 and H became hour 3), UTC"
    )
    assert words(Cron(expression="H/15 * * * *"), key="job-1") == (
        "Every 15th minute from 11 through 59 of every hour (H/15 became minute 11-59/15), UTC"
    )


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Interval(count=1), "Every minute, counted from 2027-01-01 12:30, UTC"),
        (
            Interval(count=6, unit=IntervalUnit.HOURS),
            "Every 6 hours, counted from 2027-01-01 12:30, UTC",
        ),
        (
            Interval(count=90, unit=IntervalUnit.SECONDS, after_completion=True),
            "Again 90 seconds after each run has ended, UTC",
        ),
        (Frequency(frequency="hourly"), "At the start of every hour, UTC"),
        (Frequency(frequency="hourly", minute=15, hour=7), "At minute 15 of every hour, UTC"),
        (Frequency(frequency="daily", hour=2, minute=5), "At 02:05 every day, UTC"),
        (Frequency(frequency="weekly", day=1, hour=2), "At 02:00 every Monday, UTC"),
        (Frequency(frequency="weekly", day=7), "At 00:00 every Sunday, UTC"),
        (Frequency(frequency="monthly", day_of_month=3), "At 00:00 on the 3rd day of every month, UTC"),
        (
            Frequency(frequency="monthly", day_of_month=30, hour=6),
            "At 06:00 on the 30th day of every month (the last one of a shorter month), UTC",
        ),
        (Frequency(frequency="monthly", day_of_month=31), "At 00:00 on the last day of every month, UTC"),
        (Immediate(), "Once, at once (2027-01-01 12:30), UTC"),
        (Once(run_at=MADE + timedelta(seconds=5)), "Once, at 2027-01-01 12:30:05, UTC"),
        (Event(), "Whenever its webhook or channel is triggered"),
        (Manual(), "Only when somebody asks for it"),
    ],
)
def test_every_other_kind(schedule: Schedule, expected: str) -> None:
    assert words(schedule) == expected


def test_everything_around_it_is_said_in_the_jobs_zone() -> None:
    found = words(
        Frequency(frequency="weekly", day=1, hour=2),
        timezone="Europe/Berlin",
        start_at=datetime(2026, 12, 31, 23, tzinfo=UTC),
        end_at=datetime(2027, 6, 30, 22, tzinfo=UTC),
        max_runs=5,
        jitter=timedelta(seconds=90),
        availability=Availability(
            windows=(OFFICE, Window(days=frozenset({6, 7}), start=time(22), end=time())),
            calendar=Calendar(excluded_dates=frozenset({date(2027, 2, 1)}), holidays_of="DE-BY"),
            outside=Outside.MOVE,
        ),
    )
    dash = "\N{EN DASH}"
    assert found == (
        "At 02:00 every Monday, Europe/Berlin, from 2027-01-01, until 2027-07-01 00:00, at most 5 times, "
        f"spread over 90 seconds, only Mon{dash}Fri 08:00{dash}18:00 and Sat, Sun 22:00{dash}24:00, "
        "not on public holidays of DE-BY, not on 2027-02-01, otherwise at the next opening"
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"max_runs": 1}, "at most once"),
        ({"jitter": timedelta(minutes=1)}, "spread over 1 minute"),
        ({"jitter": timedelta(seconds=0.5)}, "spread over 0.5 seconds"),
        ({"start_at": MADE}, "from 2027-01-01 12:30"),
        (
            {"availability": Availability(calendar=Calendar(excluded_dates=frozenset({date.min, date.max})))},
            "not on 0001-01-01 or 9999-12-31",
        ),
        (
            {
                "availability": Availability(
                    calendar=Calendar(excluded_dates=frozenset(date(2027, 1, n) for n in range(1, 9)))
                )
            },
            "not on 8 excluded dates",
        ),
        (
            {
                "availability": Availability(
                    windows=(Window(days=frozenset(range(1, 8)), start=time(), end=time()),)
                )
            },
            "only every day 00:00\N{EN DASH}24:00",
        ),
    ],
)
def test_bounds_one_by_one(more: dict[str, Any], expected: str) -> None:
    assert words(Manual(), **more) == f"Only when somebody asks for it, UTC, {expected}"


def test_it_never_fails_for_a_valid_time() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    assert "until 9999-12-31 23:59:59" in words(Manual(), end_at=end, timezone="Asia/Tokyo")
    explained = 0
    usual = ["*", "1", "5", "7", "2-5", "1-5/2", "*/2", "*/90", "3/2", "5-5/3", "H", "H/3", "H(1-4)/2"]
    special = [[], [], [], ["L", "LW"], ["JAN", "DEC-FEB"], ["MON", "FRI-MON", "SUN,7", "5#2", "FRIL"]]
    fields = [
        st.lists(st.sampled_from([*usual, *more]), min_size=1, max_size=3).map(",".join) for more in special
    ]

    @seeded(800, "explain")
    @given(st.tuples(*fields), st.booleans())
    def explains(fields: tuple[str, ...], seconds: bool) -> None:
        nonlocal explained
        expression = " ".join(fields if seconds else fields[1:])
        try:
            check_cron(expression)
        except CronError:
            return
        found = words(Cron(expression=expression))
        assert found.endswith(", UTC")
        assert len(found) > 10
        explained += 1

    explains()
    assert explained > 700
