"""What people type: durations, instants, schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from noonday.cli import values
from noonday.domain.errors import Invalid
from noonday.domain.schedule import Cron, Frequency, Interval, IntervalUnit, Once, Schedule

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "count", "unit"),
    [
        ("30s", 30, IntervalUnit.SECONDS),
        ("90 seconds", 90, IntervalUnit.SECONDS),
        ("5m", 5, IntervalUnit.MINUTES),
        ("5 min", 5, IntervalUnit.MINUTES),
        ("24h", 24, IntervalUnit.HOURS),
        ("1 day", 1, IntervalUnit.DAYS),
        ("1h30m", 90, IntervalUnit.MINUTES),
        ("1d 12h", 36, IntervalUnit.HOURS),
        ("2H", 2, IntervalUnit.HOURS),
    ],
)
def test_it_counts_an_interval_in_the_smallest_unit_written(
    text: str, count: int, unit: IntervalUnit
) -> None:
    assert values.interval("--every", text) == Interval(count=count, unit=unit)


@pytest.mark.parametrize(
    "text", ["", "5", "5x", "m", "-5m", "5m!", "0s", "0h0m", "1.5h", "5 mice", "5m 3", "9999999999s"]
)
def test_it_refuses_what_is_no_interval(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        values.interval("--every", text)
    assert refused.value.problems[0].field == "--every"
    assert repr(text) in refused.value.problems[0].message or not text


def test_it_takes_bare_numbers_as_seconds_where_a_span_is_meant() -> None:
    assert values.duration("--timeout", "90") == timedelta(seconds=90)
    assert values.seconds("--timeout", "1h") == 3600
    assert values.seconds("--timeout", None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-31T02:00", datetime(2027, 1, 31, 1, tzinfo=UTC)),
        ("2027-07-31 02:00", datetime(2027, 7, 31, 0, tzinfo=UTC)),
        ("2027-01-31T02:00Z", datetime(2027, 1, 31, 2, tzinfo=UTC)),
        ("2027-01-31T02:00+05:30", datetime(2027, 1, 30, 20, 30, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 30, 23, tzinfo=UTC)),
    ],
)
def test_it_means_a_time_without_offset_in_the_zone(text: str, expected: datetime) -> None:
    assert values.instant("--from", text, BERLIN) == expected


@pytest.mark.parametrize("text", ["", "tomorrow", "2027-13-01", "0001-01-01T00:00", "02:00"])
def test_it_refuses_what_is_no_instant(text: str) -> None:
    with pytest.raises(Invalid, match="--from"):
        values.instant("--from", text, BERLIN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every 5m", Interval(count=5)),
        ("EVERY 2 hours", Interval(count=2, unit=IntervalUnit.HOURS)),
        ("hourly", Frequency(frequency="hourly")),
        ("hourly :15", Frequency(frequency="hourly", minute=15)),
        ("hourly at 15", Frequency(frequency="hourly", minute=15)),
        ("daily 02:30", Frequency(frequency="daily", hour=2, minute=30)),
        ("daily at 2:30", Frequency(frequency="daily", hour=2, minute=30)),
        ("daily", Frequency(frequency="daily")),
        ("weekly mon 02:00", Frequency(frequency="weekly", day=1, hour=2)),
        ("weekly Sunday", Frequency(frequency="weekly", day=7)),
        ("monthly 31 23:59", Frequency(frequency="monthly", day_of_month=31, hour=23, minute=59)),
        ("at 2027-01-31T02:00", Once(run_at=datetime(2027, 1, 31, 1, tzinfo=UTC))),
        ("once 2027-01-31T02:00Z", Once(run_at=datetime(2027, 1, 31, 2, tzinfo=UTC))),
        ("0 2 * * mon", Cron(expression="0 2 * * mon")),
        ("  @daily ", Cron(expression="@daily")),
    ],
)
def test_it_reads_schedules_in_words(text: str, expected: Schedule) -> None:
    assert values.schedule("expression", text, BERLIN) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("daily 24:00", "24:00"),
        ("daily noon", "noon"),
        ("daily 2", "2"),
        ("hourly :60", ":60"),
        ("weekly t", "'t'"),
        ("weekly", "''"),
        ("monthly 32 02:00", "32"),
        ("monthly 0", "0"),
        ("monthly", "''"),
        ("every", "''"),
        ("at noon", "noon"),
    ],
)
def test_it_names_what_is_wrong_in_a_schedule(text: str, named: str) -> None:
    with pytest.raises(Invalid) as refused:
        values.schedule("expression", text, BERLIN)
    assert named in str(refused.value)


def test_it_refuses_a_folder_of_zones() -> None:
    for name in ("Europe", "Mars/Base", "", "../etc/passwd"):
        with pytest.raises(Invalid, match="--timezone"):
            values.zone("--timezone", name)
