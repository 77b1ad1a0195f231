"""The short way to a plan finds what the long one does, and it is the one that most jobs take."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.domain.calendar import Availability, Calendar
from noonday.domain.job import CatchUp, Job, MisfirePolicy
from noonday.domain.occurrences import next_after, times
from noonday.domain.planning import Facts, long_way
from noonday.domain.schedule import (
    Cron,
    Frequency,
    Immediate,
    Interval,
    IntervalUnit,
    Once,
    Schedule,
    Timing,
)
from noonday.domain.straight import straight
from tests.factories import NOON, a_job, at

SECOND = timedelta(seconds=1)
SPANS = st.integers(-200, 200).map(lambda n: n * timedelta(milliseconds=500))
FACTS = Facts(lookahead=2 * SECOND)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    kind = draw(st.sampled_from(["once", "immediate", "interval", "interval", "interval", "cron"]))
    if kind == "once":
        return Once(run_at=NOON + draw(SPANS))
    if kind == "interval":
        unit = draw(st.sampled_from([IntervalUnit.SECONDS, IntervalUnit.MINUTES]))
        return Interval(count=draw(st.sampled_from([1, 2, 3, 7])), unit=unit)
    return Immediate() if kind == "immediate" else Cron(expression="*/5 * * * * *")


@st.composite
def due_jobs(draw: st.DrawFn) -> Job:
    """With a cursor on an instant of theirs, and seldom beside it."""
    timing = Timing(
        schedule=draw(schedules()),
        anchor_at=NOON + draw(SPANS),
        start_at=draw(st.none() | SPANS.map(lambda span: NOON + span)),
        end_at=draw(st.none() | st.none() | SPANS.map(lambda span: NOON + span)),
        max_runs=draw(st.none() | st.integers(1, 12)),
        jitter=draw(st.sampled_from([timedelta(), timedelta(), SECOND / 3])),
    )
    policy = MisfirePolicy(
        grace=draw(st.sampled_from([timedelta(), 300 * SECOND])),
        coalesce=draw(st.booleans()),
        catch_up=draw(st.sampled_from(CatchUp)),
    )
    job = a_job(timing=timing, misfire=policy, fire_count=0)
    cursor = next_after(timing, job.id, NOON + draw(SPANS)) or NOON + draw(SPANS)
    cursor += draw(st.sampled_from([timedelta()] * 5 + [SECOND / 2, SECOND]))
    fired = 0 if timing.max_runs is None else draw(st.integers(0, timing.max_runs - 1))
    return replace(job, next_run_at=cursor, fire_count=fired)


@given(
    job=due_jobs(),
    late=st.sampled_from([-1, 0, 0.5, 1, 1.5, 30, 400]),
    ahead=st.sampled_from([0, 2, 9, 60]),
    cap=st.sampled_from([1, 2, 5, 1000]),
)
@settings(max_examples=600, deadline=None)
def test_the_short_way_finds_what_the_long_one_does(job: Job, late: float, ahead: float, cap: int) -> None:
    assert job.next_run_at is not None
    now, facts = job.next_run_at + late * SECOND, Facts(lookahead=(ahead + max(-late, 0)) * SECOND, cap=cap)
    found = straight(job, job.next_run_at, facts, now)
    if found is not None:
        assert found == long_way(job, job.next_run_at, facts, now)


CLOCKS: list[Schedule] = [
    Cron(expression="*/20 * * * * *"),
    Cron(expression="* * * * *"),
    Cron(expression="H/15 * * * *"),
    Cron(expression="H H * * *"),
    Cron(expression="30 1,2 * * *"),
    Cron(expression="0 9-17 * * MON-FRI"),
    Frequency(frequency="hourly", minute=5),
    Frequency(frequency="daily", hour=2, minute=30),
    Frequency(frequency="weekly", day=7, hour=3),
    Frequency(frequency="monthly", day_of_month=31),
]
SPRING = at("2027-03-26T16:30:00")  # two days before Europe's clocks change


@given(
    schedule=st.sampled_from(CLOCKS),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    start=st.integers(0, 5 * 24 * 60).map(lambda n: SPRING + n * timedelta(minutes=1)),
    anchor=st.sampled_from([timedelta(days=400), timedelta(hours=26), timedelta(minutes=1)]),
    late=st.sampled_from([-2, 0, 1, 3]),
    ahead=st.sampled_from([2, 30, 4000]),
    max_runs=st.none() | st.integers(1, 2),
    jitter=st.sampled_from([timedelta(), 9 * SECOND]),
)
@settings(max_examples=300, deadline=None)
def test_nor_does_it_err_where_the_clocks_change(
    schedule: Schedule,
    zone: str,
    start: datetime,
    anchor: timedelta,
    late: float,
    ahead: float,
    max_runs: int | None,
    jitter: timedelta,
) -> None:
    timing = Timing(
        schedule=schedule, anchor_at=start - anchor, timezone=zone, max_runs=max_runs, jitter=jitter
    )
    job = a_job(timing=timing)
    for cursor in islice(times(timing, job.id, start), 4):  # what is remembered of one serves the next
        now, facts = cursor + late * SECOND, Facts(lookahead=(ahead + max(-late, 0)) * SECOND)
        found = straight(job, cursor, facts, now)
        if found is not None:
            assert found == long_way(job, cursor, facts, now)


def short(job: Job, now: datetime = NOON) -> bool:
    assert job.next_run_at is not None
    return straight(job, job.next_run_at, FACTS, now) is not None


EVERY_SECOND = Interval(count=1, unit=IntervalUnit.SECONDS)


@pytest.mark.parametrize("schedule", [Once(run_at=NOON), Immediate(), EVERY_SECOND], ids=lambda one: one.type)
def test_what_is_on_time_takes_the_short_way(schedule: Schedule) -> None:
    anchor = NOON - (timedelta() if schedule.type == "immediate" else 7 * SECOND)
    job = a_job(timing=Timing(schedule=schedule, anchor_at=anchor), next_run_at=NOON)
    assert short(job)
    assert short(job, NOON + SECOND)
    holiday = Availability(calendar=Calendar(excluded_dates=frozenset({(NOON + timedelta(days=9)).date()})))
    assert not short(replace(job, timing=replace(job.timing, availability=holiday)))


@pytest.mark.parametrize(
    "schedule", [CLOCKS[0], CLOCKS[1], CLOCKS[2], CLOCKS[3], CLOCKS[6], CLOCKS[7]], ids=repr
)
def test_so_does_what_the_wall_clock_tells_in_equal_steps(schedule: Schedule) -> None:
    timing = Timing(schedule=schedule, anchor_at=NOON - timedelta(days=9), timezone="Europe/Berlin")
    job = a_job(timing=timing)
    due = next_after(timing, job.id, NOON)
    assert due is not None
    assert short(replace(job, next_run_at=due), due)


def test_two_jobs_with_h_in_one_cron_text_keep_their_own_times() -> None:
    timing = Timing(schedule=Cron(expression="H H * * *"), anchor_at=NOON - timedelta(days=9))
    for job in (a_job(timing=timing), a_job(timing=timing)):
        due = next_after(timing, job.id, NOON)
        assert due is not None
        made = straight(job, due, FACTS, due)
        assert made is not None
        assert made.next_run_at == next_after(timing, job.id, due) == due + timedelta(days=1)


def test_what_was_missed_takes_it_only_if_all_of_it_is_to_run() -> None:
    timing = Timing(schedule=EVERY_SECOND, anchor_at=NOON - 7 * SECOND)
    job = a_job(timing=timing, next_run_at=NOON)
    assert not short(job, NOON + 2 * SECOND)
    assert short(replace(job, misfire=MisfirePolicy(catch_up=CatchUp.ALL)), NOON + 2 * SECOND)


def test_at_the_end_of_the_calendar_it_takes_the_long_way() -> None:
    every = Interval(count=3_000_000, unit=IntervalUnit.DAYS)
    last = datetime.max.replace(tzinfo=NOON.tzinfo) - SECOND
    for anchor in (NOON, last):
        timing = Timing(schedule=every, anchor_at=anchor)
        assert not short(a_job(timing=timing, next_run_at=NOON))
