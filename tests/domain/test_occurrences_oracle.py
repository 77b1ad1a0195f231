"""Schedules against the oracle.

A case is one question "what comes next after this instant?", asked near a change of the clocks and compared
with the oracle's answer. How many are asked is asserted below. NOONDAY_TEST_SEED=123 asks others.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.occurrences import next_after, times
from noonday.domain.schedule import Cron, Frequency, Schedule, Timing
from tests.domain.timing_oracle import (
    HOUR,
    MINUTE,
    SECOND,
    ZONES,
    Matcher,
    Window,
    brute_force,
    changes,
    cron_matcher,
    frequency_matcher,
    seeded,
    window,
)

# A question is asked at the change and some hours from it, one second before each, and a drawn span later.
HOURS = (-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)
PROBES = [hours * HOUR - seconds * SECOND for hours in HOURS for seconds in (0, 1)]
LATER = st.timedeltas(timedelta(seconds=2), timedelta(minutes=29))  # so that no question is asked twice
EXAMPLES = {"cron": 50, "cron with seconds": 16, "frequency": 24}
CASES_PER_ZONE = 2 * len(PROBES) * sum(EXAMPLES.values())


def test_it_asks_more_than_a_hundred_thousand_questions_in_more_than_twenty_zones() -> None:
    assert len(ZONES) > 20
    assert len(ZONES) * CASES_PER_ZONE > 100_000


@st.composite
def number_field(draw: st.DrawFn, low: int, high: int, likely: tuple[int, ...]) -> str:
    one = st.one_of(st.sampled_from(likely), st.integers(low, high))
    first, last = sorted((draw(one), draw(one)))
    step = draw(st.sampled_from((1, 2, 3, 5, 7, 10, 15, 20, 30)))
    shapes = (f"{first}", f"{first},{last}", f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", "*")
    return draw(st.sampled_from((*shapes, shapes[0], f"{first}/{step}")))


@st.composite
def cron_text(draw: st.DrawFn, around: Window, seconds: bool) -> str:
    _, day = around.steps[draw(st.integers(0, len(around.steps) - 1))]
    weekday, name = day.isoweekday() % 7, f"{day:%a}".upper()
    any_day = ["*"] * 4
    dates = [*any_day, f"{day.day}", "L", "LW", "*/2", f"1-{day.day}", "13,L"]
    months = [*any_day, f"{day.month}", f"{day:%b}", "*/2", "1-6", "JAN-JUN,AUG-DEC"]
    weekdays = [*any_day, f"{weekday}", name, f"{name}#1", f"{weekday}#{(day.day + 6) // 7}", f"{weekday}L"]
    weekdays += ["MON-FRI", "FRI-MON", "SAT-TUE", "1-7", "5-1", "7", "*/3", "TUE,SUN"]
    date, month, week = (draw(st.sampled_from(choice)) for choice in (dates, months, weekdays))
    hour = draw(number_field(0, 23, (0, 1, 2, 3, 4, 22, 23)))
    minute = draw(number_field(0, 59, (0, 1, 15, 29, 30, 31, 45, 59)))
    first = [draw(number_field(0, 59, (0, 1, 30, 59)))] if seconds else []
    return " ".join([*first, minute, hour, date, month, week])


def frequencies(around: Window) -> st.SearchStrategy[Frequency]:
    day = around.change.astimezone(ZoneInfo(around.zone))
    return st.builds(
        Frequency,
        frequency=st.sampled_from(("hourly", "daily", "weekly", "monthly")),
        minute=st.sampled_from((0, 1, 15, 29, 30, 45, 59)),
        hour=st.sampled_from((0, 1, 2, 2, 3, 12, 23)),
        day=st.sampled_from((day.isoweekday(), 1, 7)),
        day_of_month=st.sampled_from((day.day, 28, 29, 30, 31)),
    )


def compare(around: Window, schedule: Schedule, matches: Matcher, fixed: bool, later: timedelta) -> int:
    timing = Timing(schedule=schedule, anchor_at=around.steps[0][0], timezone=around.zone)
    start, end = around.steps[0][0], around.steps[-1][0]
    expected = brute_force(around, matches, fixed)
    assert list(takewhile(lambda due: due <= end, times(timing, "", start))) == expected
    questions = {around.change + probe + span for probe in PROBES for span in (timedelta(), later)}
    for after in questions:
        place = bisect_right(expected, after)
        answer = next_after(timing, "", after)
        if place < len(expected):
            assert answer == expected[place]
        else:
            assert answer is None or answer > end
    return len(questions)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("kind", "step"), [("cron", MINUTE), ("cron with seconds", SECOND)])
def test_cron_agrees_with_the_oracle(zone: str, kind: str, step: timedelta) -> None:
    asked = 0

    @seeded(EXAMPLES[kind], zone)
    @given(st.data())
    def agrees(data: st.DataObject) -> None:
        nonlocal asked
        around = window(zone, data.draw(st.sampled_from(changes(zone))), step)
        text = data.draw(cron_text(around, step == SECOND))
        fixed = not any(field[0] == "*" for field in text.split()[: 3 if step == SECOND else 2])
        asked += compare(around, Cron(expression=text), cron_matcher(text), fixed, data.draw(LATER))

    agrees()
    assert asked >= 2 * len(PROBES) * EXAMPLES[kind]


@pytest.mark.parametrize("zone", ZONES)
def test_frequency_agrees_with_the_oracle(zone: str) -> None:
    asked = 0

    @seeded(EXAMPLES["frequency"], zone)
    @given(st.data())
    def agrees(data: st.DataObject) -> None:
        nonlocal asked
        around = window(zone, data.draw(st.sampled_from(changes(zone))), MINUTE)
        schedule = data.draw(frequencies(around))
        fixed = schedule.frequency != "hourly"
        asked += compare(around, schedule, frequency_matcher(schedule), fixed, data.draw(LATER))

    agrees()
    assert asked >= 2 * len(PROBES) * EXAMPLES["frequency"]
