"""Windows, excluded dates and holidays: open or closed, the next opening, what becomes of times outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.calendar import (
    ALWAYS,
    Availability,
    Calendar,
    Outside,
    Window,
    closure,
    holidays_of,
    is_open,
    next_opening,
)
from noonday.domain.execution import SkipReason
from noonday.domain.occurrences import Occurrence, occurrences, upcoming
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Timing
from tests.domain.timing_oracle import MINUTE, ZONES, changes, seeded, window

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EVERY_DAY = frozenset(range(1, 8))
OFFICE = Window(days=frozenset(range(1, 6)), start=time(8), end=time(18))
NIGHT = Window(days=frozenset({5}), start=time(22), end=time(6))


def within(*windows: Window, outside: Outside = Outside.SKIP, **calendar: Any) -> Availability:
    return Availability(windows=windows, calendar=Calendar(**calendar), outside=outside)


def a_timing(expression: str, availability: Availability, **more: Any) -> Timing:
    return Timing(
        schedule=Cron(expression=expression), anchor_at=MONDAY - DAY, availability=availability, **more
    )


def first(timing: Timing, count: int, after: datetime = MONDAY - timedelta.resolution) -> list[Occurrence]:
    return list(islice(occurrences(timing, "", after), count))


class TestOpen:
    def test_without_limits_it_is_always_open(self) -> None:
        assert is_open(ALWAYS, "UTC", MONDAY)
        assert next_opening(ALWAYS, "UTC", MONDAY) == MONDAY

    @pytest.mark.parametrize(
        ("hours", "expected"),
        [(7.99, False), (8, True), (17.99, True), (18, False), (24 * 5 + 9, False), (24 * 7 + 9, True)],
    )
    def test_a_window_includes_its_start_and_not_its_end(self, hours: float, expected: bool) -> None:
        assert is_open(within(OFFICE), "UTC", MONDAY + hours * HOUR) is expected

    @pytest.mark.parametrize(
        ("day", "hour", "expected"),
        [
            (5, 21, False),
            (5, 23, True),
            (6, 0, True),
            (6, 5, True),
            (6, 6, False),
            (6, 23, False),
            (5, 5, False),
        ],
    )
    def test_a_window_may_pass_midnight(self, day: int, hour: int, expected: bool) -> None:
        assert is_open(within(NIGHT), "UTC", MONDAY + (day - 1) * DAY + hour * HOUR) is expected

    def test_a_window_that_ends_at_midnight_ends_with_its_day(self) -> None:
        evening = within(Window(days=frozenset({1}), start=time(20), end=time()))
        assert is_open(evening, "UTC", MONDAY + 23.99 * HOUR)
        assert not is_open(evening, "UTC", MONDAY + 24 * HOUR)

    def test_a_whole_day(self) -> None:
        mondays = within(Window(days=frozenset({1}), start=time(), end=time()))
        assert [is_open(mondays, "UTC", MONDAY + hours * HOUR) for hours in (-1, 0, 23, 24)] == [
            False,
            True,
            True,
            False,
        ]

    def test_a_window_is_meant_in_the_jobs_zone(self) -> None:
        assert is_open(within(OFFICE), "Asia/Tokyo", MONDAY - HOUR)
        assert not is_open(within(OFFICE), "America/New_York", MONDAY + 12 * HOUR)

    def test_an_excluded_date_closes_its_day(self) -> None:
        closed = within(excluded_dates=frozenset({date(2027, 1, 4)}))
        assert not is_open(closed, "UTC", MONDAY + 12 * HOUR)
        assert is_open(closed, "UTC", MONDAY + DAY)
        assert next_opening(closed, "UTC", MONDAY) == MONDAY + DAY

    def test_it_says_why(self) -> None:
        why = closure(within(OFFICE), "UTC", MONDAY + 7 * HOUR)
        assert why is not None
        assert (why.by, why.detail) == ("window", "Monday 07:00 is outside the windows")
        why = closure(within(excluded_dates=frozenset({date(2027, 1, 4)})), "UTC", MONDAY)
        assert why is not None
        assert (why.by, why.detail) == ("calendar", "2027-01-04 is an excluded date")

    def test_nothing_opens_at_the_end_of_time(self) -> None:
        assert (
            next_opening(within(OFFICE), "America/New_York", datetime(9998, 12, 31, 23, tzinfo=UTC)) is None
        )
        everything = frozenset(date(9998, 12, 1) + number * DAY for number in range(396))
        closed = within(excluded_dates=everything)
        assert next_opening(closed, "Asia/Tokyo", datetime(9998, 12, 31, tzinfo=UTC)) is None
        assert next_opening(ALWAYS, "UTC", datetime.max.replace(tzinfo=UTC)) is None

    def test_never_open_is_found_out_in_the_end(self) -> None:
        days = frozenset(date(2027, 1, 4) + number * DAY for number in range(4000))
        assert next_opening(within(excluded_dates=days), "UTC", MONDAY) is None


class TestHolidays:
    def test_a_public_holiday_closes_its_day(self) -> None:
        christmas = datetime(2027, 12, 25, 12, tzinfo=UTC)
        why = closure(within(holidays_of="DE"), "UTC", christmas)
        assert why is not None
        assert why.by == "calendar"
        assert why.detail == "2027-12-25 is a public holiday of DE: Christmas Day"
        assert next_opening(within(holidays_of="DE"), "Europe/Berlin", christmas) == datetime(
            2027, 12, 26, 23, tzinfo=UTC
        )

    def test_parts_of_a_country_have_their_own(self) -> None:
        epiphany = datetime(2027, 1, 6, 12, tzinfo=UTC)
        assert not is_open(within(holidays_of="DE-BY"), "UTC", epiphany)
        assert is_open(within(holidays_of="DE-BE"), "UTC", epiphany)

    @pytest.mark.parametrize("place", ["XX", "DE-XX", "de", "", "-", "HolidayBase", "utils"])
    def test_an_unknown_place_is_an_error(self, place: str) -> None:
        with pytest.raises(KeyError):
            holidays_of(place, 2027)

    def test_the_library_is_loaded_on_use_only(self) -> None:
        code = (
            "import sys, noonday.domain.occurrences, noonday.domain.explain; print('holidays' in sys.modules)"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "False"


class TestOccurrences:
    def test_outside_is_skipped_with_the_reason_and_the_reopening(self) -> None:
        found = first(a_timing("0 */6 * * *", within(OFFICE)), 4)
        assert [occurrence.skip for occurrence in found] == [
            SkipReason.WINDOW,
            SkipReason.WINDOW,
            None,
            SkipReason.WINDOW,
        ]
        assert found[0].reopens_at == found[1].reopens_at == MONDAY + 8 * HOUR
        assert found[3].reopens_at == MONDAY + 32 * HOUR
        assert found[2].available_at == found[2].due_at == MONDAY + 12 * HOUR

    def test_a_closed_date_is_the_calendars_doing(self) -> None:
        found = first(a_timing("0 12 * * *", within(excluded_dates=frozenset({date(2027, 1, 4)}))), 2)
        assert [occurrence.skip for occurrence in found] == [SkipReason.CALENDAR, None]

    def test_the_last_before_an_opening_is_moved_to_it(self) -> None:
        found = first(a_timing("0 5,7 * * *", within(OFFICE, outside=Outside.MOVE)), 4)
        assert [(o.skip, o.available_at - MONDAY) for o in found] == [
            (SkipReason.WINDOW, 5 * HOUR),
            (None, 8 * HOUR),
            (SkipReason.WINDOW, 29 * HOUR),
            (None, 32 * HOUR),
        ]
        assert found[0].detail is not None
        assert "covered by the one due at 2027-01-04 07:00:00 UTC" in found[0].detail
        assert found[0].reopens_at == found[1].due_at

    def test_one_on_the_opening_itself_covers_those_before(self) -> None:
        found = first(a_timing("0 7,8 * * *", within(OFFICE, outside=Outside.MOVE)), 2)
        assert [(o.skip, o.available_at - MONDAY) for o in found] == [
            (SkipReason.WINDOW, 7 * HOUR),
            (None, 8 * HOUR),
        ]

    def test_nothing_is_moved_beyond_the_end(self) -> None:
        timing = a_timing("0 7 * * *", within(OFFICE, outside=Outside.MOVE), end_at=MONDAY + 7.5 * HOUR)
        (only,) = first(timing, 5)
        assert only.skip is SkipReason.WINDOW
        assert only.reopens_at is None

    def test_a_move_to_the_very_end_is_still_good(self) -> None:
        timing = a_timing("0 7 * * *", within(OFFICE, outside=Outside.MOVE), end_at=MONDAY + 8 * HOUR)
        (only,) = first(timing, 5)
        assert (only.skip, only.available_at) == (None, MONDAY + 8 * HOUR)

    def test_a_week_of_seconds_is_jumped_over(self) -> None:
        mondays = within(Window(days=frozenset({1}), start=time(9), end=time(9, 0, 2)))
        found = upcoming(a_timing("* * * * * *", mondays), "", MONDAY, 6)
        assert [due - MONDAY - 9 * HOUR for due in found] == [
            weeks * 7 * DAY + seconds * timedelta(seconds=1) for weeks in (0, 1, 2) for seconds in (0, 1)
        ]

    def test_upcoming_shows_when_moved_ones_will_run(self) -> None:
        timing = a_timing("* * * * *", within(OFFICE, outside=Outside.MOVE))
        assert upcoming(timing, "", MONDAY, 2) == [MONDAY + 8 * HOUR, MONDAY + 8 * HOUR + MINUTE]

    def test_upcoming_gives_up_where_nothing_will_ever_run(self) -> None:
        assert upcoming(a_timing("0 3 * * *", within(OFFICE)), "", MONDAY, 5) == []

    def test_a_far_start_does_not_look_like_for_ever(self) -> None:
        start = datetime(2050, 1, 1, tzinfo=UTC)
        found = upcoming(a_timing("0 */6 * * *", within(OFFICE), start_at=start), "", MONDAY, 1)
        assert found == [datetime(2050, 1, 3, 12, tzinfo=UTC)]

    def test_max_runs_counts_what_fires(self) -> None:
        timing = a_timing("0 */6 * * *", within(OFFICE), max_runs=3)
        assert len(upcoming(timing, "", MONDAY, 10, fired=1)) == 2


TIMES = st.builds(time, st.sampled_from((0, 0, 1, 2, 3, 8, 18, 22, 23)), st.sampled_from((0, 1, 30, 59)))
WINDOWS = st.builds(
    Window, days=st.frozensets(st.integers(1, 7), min_size=1, max_size=5), start=TIMES, end=TIMES
).filter(lambda window: window.start != window.end or window.start == time())


def open_at(availability: Availability, wall: datetime) -> bool:
    """By minutes of the week, counted out one by one."""
    week = 7 * 24 * 60
    now = (wall.isoweekday() - 1) * 1440 + wall.hour * 60 + wall.minute
    for opening in availability.windows:
        start, end = (clock.hour * 60 + clock.minute for clock in (opening.start, opening.end))
        length = end - start if end > start else end + 1440 - start
        if any((now - (day - 1) * 1440 - start) % week < length for day in opening.days):
            return wall.date() not in availability.calendar.excluded_dates
    return not availability.windows and wall.date() not in availability.calendar.excluded_dates


def verdicts(due: Iterable[datetime], opens: list[datetime], move: bool) -> dict[datetime, datetime | None]:
    """When each instant may run, if at all."""
    open_minutes, found, every = set(opens), {}, list(due)
    for number, instant in enumerate(every):
        found[instant] = instant if instant in open_minutes else None
        opening = next((minute for minute in opens if minute > instant), None)
        if move and instant not in open_minutes and opening is not None:
            covered = any(later <= opening for later in every[number + 1 :])
            found[instant] = None if covered else opening
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_openings_agree_with_the_oracle(zone: str) -> None:
    @seeded(8, zone)
    @given(st.data())
    def agrees(data: st.DataObject) -> None:
        around = window(zone, data.draw(st.sampled_from(changes(zone))), MINUTE)
        days = sorted({wall.date() for _, wall in around.steps})
        availability = Availability(
            windows=tuple(data.draw(st.lists(WINDOWS, max_size=2))),
            calendar=Calendar(excluded_dates=data.draw(st.frozensets(st.sampled_from(days), max_size=2))),
            outside=data.draw(st.sampled_from(Outside)),
        )
        opens = [instant for instant, wall in around.steps if open_at(availability, wall)]
        start, end = around.steps[0][0], around.steps[-1][0]
        for after in data.draw(
            st.lists(st.sampled_from([instant for instant, _ in around.steps]), max_size=20)
        ):
            assert is_open(availability, zone, after) == (after in opens)
            expected = next((instant for instant in opens if instant >= after), None)
            opening = next_opening(availability, zone, after)
            assert opening == expected or (expected is None and (opening is None or opening > end))

        every = data.draw(st.sampled_from((7, 60, 150, 600)))
        schedule = Interval(count=every, unit=IntervalUnit.MINUTES)
        timing = Timing(schedule=schedule, anchor_at=start, timezone=zone, availability=availability)
        last_opening = max(opens, default=start)
        found = list(takewhile(lambda o: o.due_at <= last_opening, occurrences(timing, "", start)))
        expected_verdicts = verdicts(
            [start + number * every * MINUTE for number in range(1, 72 * 60 // every + 1)],
            opens,
            availability.outside is Outside.MOVE,
        )
        for occurrence in found:
            runs_at = occurrence.available_at if occurrence.skip is None else None
            assert runs_at == expected_verdicts[occurrence.due_at]

    agrees()
