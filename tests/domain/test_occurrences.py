"""Raw instants of every kind of schedule, their bounds, jitter, counting and searching."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.occurrences import count_between, last_until, next_after, spread, times, upcoming
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

MADE = datetime(2027, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
TICK = timedelta.resolution
EVERY_HOUR = Interval(count=1, unit=IntervalUnit.HOURS)


def a_timing(schedule: Schedule, **more: Any) -> Timing:
    return Timing(schedule=schedule, **{"anchor_at": MADE, **more})


class TestInterval:
    def test_the_first_run_comes_one_interval_after_creation(self) -> None:
        assert next_after(a_timing(EVERY_HOUR), "", MADE - DAY) == MADE + HOUR
        assert next_after(a_timing(EVERY_HOUR), "", MADE) == MADE + HOUR

    def test_it_keeps_its_rhythm_however_late_it_is_asked(self) -> None:
        late = MADE + 1000 * HOUR + 59 * MINUTE
        assert next_after(a_timing(EVERY_HOUR), "", late) == MADE + 1001 * HOUR

    def test_an_instant_is_strictly_after(self) -> None:
        assert next_after(a_timing(EVERY_HOUR), "", MADE + HOUR - TICK) == MADE + HOUR
        assert next_after(a_timing(EVERY_HOUR), "", MADE + HOUR) == MADE + 2 * HOUR

    def test_a_given_start_is_itself_the_first(self) -> None:
        start = MADE + 30 * MINUTE
        timing = a_timing(EVERY_HOUR, start_at=start, anchor_at=start)
        assert list(islice(times(timing, "", MADE), 2)) == [start, start + HOUR]

    def test_after_completion_only_the_first_is_known(self) -> None:
        timing = a_timing(Interval(count=5, after_completion=True))
        assert list(times(timing, "", MADE)) == [MADE + 5 * MINUTE]
        assert next_after(timing, "", MADE + 5 * MINUTE) is None
        assert last_until(timing, "", MADE + DAY, MADE) == MADE + 5 * MINUTE
        assert count_between(timing, "", MADE, MADE + DAY) == (1, True)

    def test_a_thousand_years_of_seconds_take_no_time(self) -> None:
        timing = a_timing(Interval(count=1, unit=IntervalUnit.SECONDS))
        after = datetime(3027, 1, 1, tzinfo=UTC)
        assert next_after(timing, "", after) == after + timedelta(microseconds=250_000)
        assert count_between(timing, "", MADE, after) == (((after - MADE) // timedelta(seconds=1)), True)

    def test_it_ends_before_the_year_9999(self) -> None:
        timing = a_timing(Interval(count=36_525, unit=IntervalUnit.DAYS))
        assert next_after(timing, "", datetime(9998, 12, 1, tzinfo=UTC)) is None
        assert next_after(a_timing(EVERY_HOUR), "", datetime.max.replace(tzinfo=UTC)) is None
        end = datetime(9999, 1, 1, tzinfo=UTC)
        timing = a_timing(EVERY_HOUR, anchor_at=end - DAY)
        assert list(times(timing, "", end - 2 * HOUR)) == [end - HOUR]
        assert count_between(timing, "", end - 2 * HOUR, end + DAY) == (2, True)
        assert last_until(timing, "", end + DAY, end - DAY) == end - HOUR

    def test_it_agrees_with_adding_up(self) -> None:
        compared = 0

        @seeded(400, "interval")
        @given(
            st.integers(1, 200),
            st.sampled_from(IntervalUnit),
            st.booleans(),
            st.lists(st.timedeltas(-DAY, 400 * DAY), min_size=20, max_size=20),
        )
        def agrees(count: int, unit: IntervalUnit, started: bool, spans: list[timedelta]) -> None:
            nonlocal compared
            schedule = Interval(count=count, unit=unit)
            timing = a_timing(schedule, start_at=MADE if started else None)
            instants = [MADE + schedule.every * k for k in range(0 if started else 1, 300)]
            for span in spans:
                after = MADE + min(span, schedule.every * 290)
                expected = next(instant for instant in instants if instant > after)
                assert next_after(timing, "", after) == expected
                inside = [instant for instant in instants if MADE - HOUR <= instant <= after]
                assert count_between(timing, "", MADE - HOUR, after, cap=1) == (len(inside), True)
                assert last_until(timing, "", after, MADE - HOUR) == (inside[-1] if inside else None)
                compared += 1

        agrees()
        assert compared >= 8000


class TestSingleTimes:
    def test_once_is_due_at_its_time_only(self) -> None:
        timing = a_timing(Once(run_at=MADE + DAY))
        assert list(times(timing, "", MADE)) == [MADE + DAY]
        assert next_after(timing, "", MADE + DAY) is None

    def test_once_given_in_another_offset_is_due_in_utc(self) -> None:
        far = datetime.fromisoformat("2027-06-01T02:00:00+02:00")
        due = next_after(a_timing(Once(run_at=far)), "", MADE)
        assert due == far
        assert due is not None
        assert due.tzinfo is UTC

    def test_immediate_is_due_at_its_creation(self) -> None:
        assert list(times(a_timing(Immediate()), "", MADE - TICK)) == [MADE]
        assert next_after(a_timing(Immediate()), "", MADE) is None

    def test_immediate_waits_for_its_start(self) -> None:
        assert next_after(a_timing(Immediate(), start_at=MADE + DAY), "", MADE) == MADE + DAY

    @pytest.mark.parametrize("schedule", [Event(), Manual()])
    def test_event_and_manual_are_never_due(self, schedule: Schedule) -> None:
        assert next_after(a_timing(schedule), "", MADE - DAY) is None


class TestFrequency:
    AFTER = datetime(2027, 1, 30, 12, tzinfo=UTC)

    def found(self, schedule: Frequency, count: int = 3, zone: str = "UTC") -> list[str]:
        timing = a_timing(schedule, timezone=zone)
        return [f"{due:%m-%d %H:%M}" for due in islice(times(timing, "", self.AFTER), count)]

    def test_hourly(self) -> None:
        schedule = Frequency(frequency="hourly", minute=15, hour=7)
        assert self.found(schedule) == ["01-30 12:15", "01-30 13:15", "01-30 14:15"]

    def test_daily_in_its_zone(self) -> None:
        schedule = Frequency(frequency="daily", hour=2, minute=30)
        assert self.found(schedule, zone="Asia/Kolkata") == ["01-30 21:00", "01-31 21:00", "02-01 21:00"]

    def test_weekly_on_an_iso_weekday(self) -> None:
        assert self.found(Frequency(frequency="weekly", day=7, hour=2), 2) == ["01-31 02:00", "02-07 02:00"]
        assert self.found(Frequency(frequency="weekly", day=1, hour=2), 2) == ["02-01 02:00", "02-08 02:00"]

    def test_monthly_takes_the_last_day_of_a_shorter_month(self) -> None:
        schedule = Frequency(frequency="monthly", day_of_month=31, hour=2)
        assert self.found(schedule, 4) == ["01-31 02:00", "02-28 02:00", "03-31 02:00", "04-30 02:00"]

    def test_monthly_on_the_29th_in_a_leap_year(self) -> None:
        timing = a_timing(Frequency(frequency="monthly", day_of_month=29))
        assert next_after(timing, "", datetime(2028, 2, 1, tzinfo=UTC)) == datetime(2028, 2, 29, tzinfo=UTC)
        assert next_after(timing, "", datetime(2027, 2, 1, tzinfo=UTC)) == datetime(2027, 2, 28, tzinfo=UTC)

    def test_a_missing_time_runs_once_after_the_gap(self) -> None:
        timing = a_timing(
            Frequency(frequency="monthly", day_of_month=28, hour=2, minute=30), timezone="Europe/Berlin"
        )
        found = list(islice(times(timing, "", datetime(2027, 3, 1, tzinfo=UTC)), 2))
        assert found == [datetime(2027, 3, 28, 1, tzinfo=UTC), datetime(2027, 4, 28, 0, 30, tzinfo=UTC)]

    def test_monthly_ends_before_the_year_9999(self) -> None:
        timing = a_timing(Frequency(frequency="monthly"))
        assert list(times(timing, "", datetime(9998, 11, 15, tzinfo=UTC))) == [
            datetime(9998, 12, 1, tzinfo=UTC)
        ]


class TestBounds:
    def test_start_and_end_are_inclusive(self) -> None:
        start, end = datetime(2027, 1, 2, tzinfo=UTC), datetime(2027, 1, 4, tzinfo=UTC)
        timing = a_timing(Cron(expression="@daily"), start_at=start, end_at=end)
        assert list(times(timing, "", MADE - DAY)) == [start, start + DAY, end]

    def test_nothing_is_due_after_the_end(self) -> None:
        timing = a_timing(EVERY_HOUR, end_at=MADE + HOUR)
        assert next_after(timing, "", MADE) == MADE + HOUR
        assert next_after(timing, "", MADE + HOUR) is None
        assert count_between(timing, "", MADE, MADE + DAY) == (1, True)

    def test_an_end_in_the_year_9999_means_never(self) -> None:
        end = datetime.fromisoformat("9999-12-31T23:59:59-08:00")
        assert next_after(a_timing(EVERY_HOUR, end_at=end), "", MADE) == MADE + HOUR

    @pytest.mark.parametrize(
        ("after", "is_due"),
        [(datetime.min.replace(tzinfo=UTC), True), (datetime.max.replace(tzinfo=UTC), False)],
    )
    def test_it_can_be_asked_at_either_end_of_time(self, after: datetime, is_due: bool) -> None:
        for schedule in (Cron(expression="* * * * *"), EVERY_HOUR, Frequency(frequency="monthly")):
            for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
                due = next_after(a_timing(schedule, timezone=zone), "", after)
                assert (due is not None) == is_due


class TestJitter:
    TIMING = a_timing(Cron(expression="* * * * *"), jitter=timedelta(seconds=30))

    def test_there_is_none_unless_asked_for(self) -> None:
        assert spread(a_timing(EVERY_HOUR), "job", MADE) == timedelta()

    def test_it_is_the_same_for_an_instant_whenever_asked(self) -> None:
        berlin = datetime.fromisoformat("2027-01-01T13:00:00.250000+01:00")
        assert spread(self.TIMING, "job", MADE) == spread(self.TIMING, "job", berlin)

    def test_it_fills_its_range_and_never_leaves_it(self) -> None:
        found = [spread(self.TIMING, "job", MADE + number * MINUTE) for number in range(2000)]
        assert min(found) >= timedelta()
        assert max(found) <= self.TIMING.jitter
        assert max(found) - min(found) > 0.95 * self.TIMING.jitter
        assert 14 < sum(found, timedelta()).total_seconds() / len(found) < 16

    def test_jobs_differ(self) -> None:
        assert len({spread(self.TIMING, f"job-{number}", MADE) for number in range(100)}) > 95


class TestSearching:
    def test_counting_stops_at_the_cap_and_says_so(self) -> None:
        timing = a_timing(Cron(expression="* * * * *"))
        first = datetime(2027, 1, 1, tzinfo=UTC)
        assert count_between(timing, "", first, first + 9 * MINUTE, cap=10) == (10, True)
        assert count_between(timing, "", first, first + 10 * MINUTE, cap=10) == (10, False)
        assert count_between(timing, "", first + TICK, first + MINUTE - TICK) == (0, True)

    @pytest.mark.parametrize(
        "schedule",
        [
            Cron(expression="* * * * * *"),
            Cron(expression="*/7 3 * * MON"),
            Cron(expression="0 0 29 2 *"),
            Frequency(frequency="monthly", day_of_month=31),
            Once(run_at=MADE + 100 * DAY),
            Manual(),
        ],
    )
    def test_the_last_until_is_the_last_of_all(self, schedule: Schedule) -> None:
        timing = a_timing(schedule, timezone="Europe/Berlin")
        for since, until in ((MADE, MADE + HOUR), (MADE, MADE + 10 * DAY), (MADE - HOUR, MADE + 2000 * DAY)):
            recent = max(since, until - 20 * MINUTE) if schedule == Cron(expression="* * * * * *") else since
            every = list(takewhile(lambda due: due <= until, times(timing, "", recent)))  # noqa: B023 - used at once
            assert last_until(timing, "", until, since) == (every[-1] if every else None)

    def test_the_last_until_includes_its_end_and_not_its_start(self) -> None:
        timing = a_timing(Cron(expression="@daily"))
        day = datetime(2027, 1, 5, tzinfo=UTC)
        assert last_until(timing, "", day, day - DAY) == day
        assert last_until(timing, "", day - TICK, day - DAY) is None


class TestUpcoming:
    def test_it_lists_as_many_as_asked(self) -> None:
        assert upcoming(a_timing(EVERY_HOUR), "", MADE, 3) == [MADE + n * HOUR for n in (1, 2, 3)]

    def test_max_runs_less_those_that_fired_end_it(self) -> None:
        timing = a_timing(EVERY_HOUR, max_runs=5)
        assert len(upcoming(timing, "", MADE, 10)) == 5
        assert len(upcoming(timing, "", MADE, 10, fired=3)) == 2
        assert upcoming(timing, "", MADE, 10, fired=5) == upcoming(timing, "", MADE, 10, fired=9) == []

    def test_it_sees_decades_ahead_where_times_are_rare(self) -> None:
        found = upcoming(a_timing(Cron(expression="0 0 29 2 *")), "", MADE, 5)
        assert [due.year for due in found] == [2028, 2032, 2036, 2040, 2044]
