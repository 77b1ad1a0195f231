"""What check() refuses: the field as on the wire, the value, and why."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

import pytest

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.errors import Invalid
from noonday.domain.occurrences import check
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

MADE = datetime(2027, 1, 1, 12, tzinfo=UTC)
MONDAYS = frozenset({1})


def a_timing(schedule: Schedule | None = None, **more: Any) -> Timing:
    return Timing(schedule=schedule or Manual(), **{"anchor_at": MADE, **more})


def within(days: Any = MONDAYS, start: Any = time(8), end: Any = time(18)) -> Availability:
    return Availability(
        windows=(
            Window(days=frozenset({1}), start=time(8), end=time(18)),
            Window(days=days, start=start, end=end),
        )
    )


def without(**calendar: Any) -> Availability:
    return Availability(calendar=Calendar(**calendar))


@pytest.mark.parametrize(
    "timing",
    [
        a_timing(Cron(expression="H/15 9-17 * * MON-FRI"), timezone="Europe/Berlin"),
        a_timing(Interval(count=1, unit=IntervalUnit.SECONDS)),
        a_timing(Interval(count=36_525, unit=IntervalUnit.DAYS)),
        a_timing(Interval(count=2**31 - 1, unit=IntervalUnit.SECONDS)),
        a_timing(Frequency(frequency="monthly", day_of_month=31, hour=23, minute=59)),
        a_timing(Frequency(frequency="weekly", day=7)),
        a_timing(Immediate()),
        a_timing(Once(run_at=MADE)),
        a_timing(Once(run_at=MADE), start_at=MADE, end_at=MADE),
        a_timing(Once(run_at=datetime(9998, 12, 31, 23, 59, tzinfo=UTC))),
        a_timing(Event()),
        a_timing(end_at=datetime.fromisoformat("9999-12-31T23:59:59-12:00")),
        a_timing(max_runs=1, jitter=timedelta(days=1)),
        a_timing(availability=within(start=time(22), end=time(6))),
        a_timing(availability=within(start=time(), end=time())),
        a_timing(availability=without(holidays_of="DE-BY", excluded_dates=frozenset({date(2027, 1, 1)}))),
        a_timing(timezone="Etc/GMT+5"),
    ],
)
def test_it_accepts(timing: Timing) -> None:
    check(timing)


@pytest.mark.parametrize(
    ("timing", "field", "message"),
    [
        (
            a_timing(Cron(expression="61 * * * *")),
            "cron_expression",
            "'61 * * * *' is no schedule: minute '61'",
        ),
        (a_timing(Cron(expression="0 0 30 2 *")), "cron_expression", "never comes in month"),
        (a_timing(Cron(expression=cast("str", 5))), "cron_expression", "5 is no schedule"),
        (a_timing(Cron(expression=cast("str", ["x"]))), "cron_expression", "must be a string"),
        (a_timing(Cron(expression="\0 * * * *")), "cron_expression", "minute"),
        (a_timing(Interval(count=0)), "interval_minutes", "0 is not a whole number from 1 to"),
        (a_timing(Interval(count=-5)), "interval_minutes", "-5 is not"),
        (a_timing(Interval(count=2**63)), "interval_minutes", "9223372036854775808 is not"),
        (a_timing(Interval(count=36_526, unit=IntervalUnit.DAYS)), "interval_minutes", "to 36525"),
        (a_timing(Interval(count=cast("int", 1.5))), "interval_minutes", "1.5 is not"),
        (a_timing(Interval(count=True)), "interval_minutes", "True is not"),
        (
            a_timing(Interval(count=1, unit=cast("IntervalUnit", "weeks"))),
            "interval_type",
            "'weeks' is not one of",
        ),
        (a_timing(Frequency(frequency=cast("Any", "yearly"))), "frequency", "'yearly' is not one of hourly"),
        (
            a_timing(Frequency(frequency="daily", hour=24)),
            "time_config.hour",
            "24 is not a whole number from 0 to 23",
        ),
        (a_timing(Frequency(frequency="daily", minute=-1)), "time_config.minute", "-1"),
        (
            a_timing(Frequency(frequency="weekly", day=0)),
            "time_config.day",
            "0 is not a whole number from 1 to 7",
        ),
        (a_timing(Frequency(frequency="monthly", day_of_month=32)), "time_config.day_of_month", "32"),
        (a_timing(Once(run_at=datetime(2027, 1, 1))), "run_at", "is not a time with its offset"),  # noqa: DTZ001
        (a_timing(Once(run_at=datetime(9999, 1, 1, tzinfo=UTC))), "run_at", "the last year is 9998"),
        (a_timing(Once(run_at=datetime.max.replace(tzinfo=UTC))), "run_at", "the last year is 9998"),
        (
            a_timing(Once(run_at=datetime.fromisoformat("9999-12-31T23:59:59-12:00"))),
            "run_at",
            "the last year is 9998",
        ),
        (a_timing(Once(run_at=datetime.min.replace(tzinfo=UTC))), "run_at", "lies before 1970"),
        (
            a_timing(Once(run_at=MADE), start_at=MADE + timedelta(1)),
            "run_at",
            "lies before start_at 2027-01-02",
        ),
        (a_timing(Once(run_at=MADE), end_at=MADE - timedelta(1)), "run_at", "lies after end_at 2026-12-31"),
        (a_timing(start_at=datetime(2027, 1, 1)), "start_at", "offset"),  # noqa: DTZ001
        (a_timing(start_at=datetime(9999, 1, 1, tzinfo=UTC)), "start_at", "9998"),
        (a_timing(end_at=datetime(1969, 1, 1, tzinfo=UTC)), "end_at", "before 1970"),
        (a_timing(start_at=MADE, end_at=MADE - timedelta(1)), "end_at", "lies before start_at"),
        (a_timing(max_runs=0), "max_runs", "0 is not a whole number from 1 to 2147483647"),
        (a_timing(max_runs=2**31), "max_runs", "2147483648"),
        (a_timing(jitter=timedelta(seconds=-1)), "jitter_seconds", "-1.0 is not between 0 and 86400"),
        (a_timing(jitter=timedelta(days=2)), "jitter_seconds", "172800.0"),
        (a_timing(timezone="Europe/Berln"), "timezone", "did you mean 'Europe/Berlin'?"),
        (a_timing(timezone=""), "timezone", "'' is not an IANA time zone"),
        (a_timing(timezone="../../etc/passwd"), "timezone", "is not an IANA time zone"),
        (a_timing(timezone="localtime"), "timezone", "is not an IANA time zone"),
        (a_timing(timezone="right/Europe/Berlin"), "timezone", "is not an IANA time zone"),
        (a_timing(timezone="America"), "timezone", "is not an IANA time zone"),
        (a_timing(timezone="Europe/Berlin\0"), "timezone", "is not an IANA time zone"),
        (a_timing(timezone="A" * 10_000), "timezone", "..."),
        (a_timing(timezone=cast("str", None)), "timezone", "None is not an IANA time zone"),
        (a_timing(availability=within(days=frozenset({8}))), "windows[1].days", "8 is not a weekday"),
        (a_timing(availability=within(days=frozenset())), "windows[1].days", "never open"),
        (a_timing(availability=within(start="8 am")), "windows[1].start", "'8 am' is not a time of day"),
        (a_timing(availability=within(end=time(8, tzinfo=UTC))), "windows[1].end", "is not a time of day"),
        (a_timing(availability=within(start=time(8), end=time(8))), "windows[1].end", "equals the start"),
        (a_timing(availability=Availability(windows=within().windows * 51)), "windows", "at most 100"),
        (
            a_timing(availability=Availability(outside=cast("Outside", "drop"))),
            "outside",
            "'drop' is not one of",
        ),
        (
            a_timing(availability=without(holidays_of="XX")),
            "calendar.holidays",
            "'XX' is not a known country",
        ),
        (a_timing(availability=without(holidays_of="DE-XX")), "calendar.holidays", "'DE-XX'"),
        (
            a_timing(availability=without(excluded_dates=frozenset({"24 Dec"}))),
            "calendar.excluded_dates",
            "'24 Dec' is not a date",
        ),
        (
            a_timing(
                availability=without(excluded_dates=frozenset(date.fromordinal(n) for n in range(1, 5002)))
            ),
            "calendar.excluded_dates",
            "at most 5000",
        ),
        (a_timing(anchor_at=datetime(2027, 1, 1)), "anchor_at", "has no offset"),  # noqa: DTZ001
    ],
)
def test_it_refuses_and_names_field_and_value(timing: Timing, field: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        check(timing)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert message in problem.message
    assert len(problem.message) < 500


def test_it_names_every_problem_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        check(a_timing(Interval(count=0), timezone="Mars", max_runs=-1))
    assert [problem.field for problem in caught.value.problems] == [
        "timezone",
        "interval_minutes",
        "max_runs",
    ]
