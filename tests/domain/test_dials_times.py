"""Times by arithmetic are the times that are walked: in every zone, around its changes, within all bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from itertools import takewhile
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.domain.calendar import ALWAYS, Availability, Calendar, Outside, Window
from noonday.domain.counting import count_by_hour
from noonday.domain.heat import HOUR, hour_of
from noonday.domain.job import Job
from noonday.domain.schedule import Cron, Frequency, Interval, IntervalUnit, Schedule
from noonday.domain.upcoming import fires, fires_until
from noonday.domain.wallclock import changes
from tests.domain.timing_oracle import ZONES
from tests.factories import a_job, a_timing

DAYS = st.timedeltas(timedelta(), timedelta(days=2))
CRONS = st.builds(
    lambda *fields: Cron(expression=" ".join(fields)),
    st.sampled_from(("0", "30", "*/7", "5,10,59", "H", "*/20")),
    st.sampled_from(("*", "0", "2", "*/6", "1-3", "23", "H")),
    st.sampled_from(("*", "1", "31", "L", "LW", "*/2", "28-31")),
    st.sampled_from(("*", "*", "3,10", "1,2")),
    st.sampled_from(("*", "1-5", "0", "7", "FRI#2", "5L")),
)
SECONDS = st.sampled_from([Cron(expression="15,45 */10 * * * *"), Cron(expression="*/30 * 3 * * *")])
FREQUENCIES = st.builds(
    Frequency,
    frequency=st.sampled_from(("hourly", "daily", "weekly", "monthly")),
    minute=st.integers(0, 59),
    hour=st.sampled_from((0, 2, 23)),
    day=st.integers(1, 7),
    day_of_month=st.sampled_from((1, 28, 30, 31)),
)
INTERVALS = st.builds(
    Interval,
    count=st.sampled_from((1, 5, 12, 30, 60, 90, 120, 180, 1440, 1500)),
    unit=st.just(IntervalUnit.MINUTES),
)
KINDS: st.SearchStrategy[Schedule] = st.one_of(CRONS, SECONDS, FREQUENCIES, INTERVALS)
WORK = Window(days=frozenset({1, 2, 3, 4, 5}), start=clock(8), end=clock(18))
NIGHT = Window(days=frozenset({6, 7}), start=clock(22), end=clock(4))
OPEN = (
    Availability(windows=(WORK,)),
    Availability(windows=(WORK, NIGHT), calendar=Calendar(holidays_of="DE")),
    Availability(windows=(NIGHT,), outside=Outside.MOVE),
)


@st.composite
def a_moment(draw: st.DrawFn) -> tuple[str, datetime, datetime]:
    """A zone, and a stretch of a few days that begins shortly before its clock changes, or anywhere."""
    zone = draw(st.sampled_from(sorted(ZONES)))
    year = draw(st.sampled_from(ZONES[zone]))
    around = changes(ZoneInfo(zone), year) or (datetime(year, 2, 28, 23, tzinfo=UTC),)
    now = draw(st.sampled_from(around)) - draw(DAYS) + draw(DAYS) / 3
    whole = draw(st.booleans())
    now = hour_of(now) if whole else now
    return zone, now, now + draw(DAYS) + HOUR


@st.composite
def _bounds(draw: st.DrawFn, job: Job, now: datetime) -> Job:
    timing = replace(
        job.timing,
        start_at=draw(st.sampled_from((None, None, now - HOUR, now + 5 * HOUR))),
        end_at=draw(st.sampled_from((None, None, now + 30 * HOUR))),
        max_runs=draw(st.sampled_from((None, None, None, 3))),
        availability=draw(st.sampled_from((ALWAYS, ALWAYS, *OPEN))),
    )
    skipped = draw(st.sampled_from((None, None, now + 3 * HOUR)))
    return replace(job, timing=timing, skipped_through=skipped)


@st.composite
def a_fleet(
    draw: st.DrawFn, kinds: st.SearchStrategy[Schedule], bounded: bool
) -> tuple[list[Job], datetime, datetime]:
    zone, now, until = draw(a_moment())
    jobs = []
    for schedule in draw(st.lists(kinds, min_size=1, max_size=4)):
        anchor = now - draw(DAYS) - timedelta(days=2)
        timing = a_timing(schedule, timezone=zone, anchor_at=anchor)
        job = a_job(timing=timing, next_run_at=now + draw(st.sampled_from((1, 1, 20, -2))) * HOUR)
        jobs.append(draw(_bounds(job, now)) if bounded else job)
    return jobs, now, until


@settings(max_examples=60, deadline=None)
@given(a_fleet(KINDS, bounded=True), st.one_of(st.none(), DAYS))
def test_they_are_those_that_are_walked(
    found: tuple[list[Job], datetime, datetime], ahead: timedelta | None
) -> None:
    jobs, now, until = found
    since = None if ahead is None else now + ahead
    for job in jobs:
        walked = list(takewhile(lambda at: at <= until, fires(job, now, since)))
        assert list(fires_until(job, now, until, since)) == walked
        assert all(at.tzinfo is UTC for at in walked)


@settings(max_examples=60, deadline=None)
@given(a_fleet(KINDS, bounded=False))
def test_their_number_in_each_hour_is_that_of_the_walked(found: tuple[list[Job], datetime, datetime]) -> None:
    jobs, now, until = found
    walked: Counter[datetime] = Counter()
    for job in jobs:
        walked.update(hour_of(max(at, now)) for at in takewhile(lambda at: at <= until, fires(job, now)))
    counted = count_by_hour(jobs, now, until, {})
    assert {at: count for at, count in counted.starts.items() if count} == walked
    assert not counted.rough
