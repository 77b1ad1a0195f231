"""Spreading the load: what is counted, what may move, and that rhythms are kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.domain.calendar import Availability, Window
from noonday.domain.cron import check_cron
from noonday.domain.job import Job, JobId
from noonday.domain.load import Load, first_minute
from noonday.domain.occurrences import last_until, next_after, times
from noonday.domain.rebalance import Rules, distribution, propose
from noonday.domain.schedule import Cron, Frequency, Interval, IntervalUnit, Manual, Once, Schedule
from noonday.domain.shifting import Held
from tests.factories import NOON, a_job, a_timing, at

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
QUARTER = timedelta(minutes=15)
NOW = NOON + MINUTE  # the runs of twelve o'clock have begun


def armed(schedule: Schedule, now: datetime = NOW, **changes: Any) -> Job:
    timing = a_timing(schedule, **changes.pop("bounds", {}))
    job = a_job(timing=timing, **changes)
    return replace(job, next_run_at=next_after(timing, job.id, now))


def hourly(**changes: Any) -> Job:
    return armed(Interval(count=1, unit=IntervalUnit.HOURS), **changes)


def load(*starts: float) -> Load:
    return Load(start=NOON, slot=QUARTER, starts=starts)


@pytest.mark.parametrize(
    ("starts", "score"),
    [
        ((2, 2, 2, 2), 1.0),
        ((0, 0, 0, 0), 1.0),
        ((1, 3, 1, 3), 0.5),
        ((4, 0, 0, 0), 0.0),
        ((3, 2, 2, 1), 1 - 0.5**0.5 / 2),
    ],
)
def test_it_scores_how_alike_the_slots_are(starts: tuple[float, ...], score: float) -> None:
    assert load(*starts).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("now", "minutes", "start"),
    [
        ("2027-01-01T12:14:59Z", 15, "2027-01-01T12:00:00Z"),
        ("2027-01-01T12:15:00Z", 15, "2027-01-01T12:15:00Z"),
        ("2027-01-01T12:59:59Z", 60, "2027-01-01T12:00:00Z"),
    ],
)
def test_it_begins_with_the_slot_that_now_is_in(now: str, minutes: int, start: str) -> None:
    assert first_minute(at(now), minutes * MINUTE) == at(start)


def test_it_counts_the_starts_of_the_coming_day() -> None:
    jobs = [
        hourly(),
        armed(Cron(expression="20 13 * * *")),
        armed(Cron(expression="20 13 * * *"), paused=True),
        armed(Cron(expression="20 13 2 1 *")),  # tomorrow, outside
        armed(Manual()),
    ]
    found = distribution(jobs, NOW, QUARTER)
    assert (found.start, len(found.starts)) == (NOON, 96)
    # The hours from one o'clock on; the twenty-fourth is outside.
    assert found.starts[:9] == (0, 0, 0, 0, 1, 1, 0, 0, 1)
    assert found.total == 23 + 1


def test_it_counts_an_overdue_run_of_one_job_and_of_no_other() -> None:
    job = armed(Cron(expression="0 * * * *"))
    overdue = replace(armed(Cron(expression="0 * * * *")), next_run_at=NOON)
    for jobs in ([overdue, job], [job, overdue]):
        assert distribution(jobs, NOW, QUARTER).starts[:5] == (1, 0, 0, 0, 2)


def test_it_counts_a_fast_job_as_if_it_went_on_as_it_began() -> None:
    found = distribution([armed(Interval(count=10, unit=IntervalUnit.SECONDS))], NOW, QUARTER)
    assert found.starts[50] == pytest.approx(90, rel=0.01)
    assert found.total == pytest.approx(8640, rel=0.01)
    assert found.score > 0.9


def test_it_spreads_intervals_that_were_made_at_the_same_moment() -> None:
    jobs = [hourly() for _ in range(40)]
    proposal = propose(jobs, NOW, Rules())
    assert proposal.before.score == 0.0
    assert proposal.after.score > 0.75  # nothing starts in the first hour, whatever is done
    assert 20 <= len(proposal.moves) <= 40
    assert (max(proposal.before.starts), max(proposal.after.starts)) == (40, 10)
    moved = {move.job.id: replace(move.job, timing=move.timing) for move in proposal.moves}
    again = [moved.get(job.id, job) for job in jobs]
    rearmed = [replace(job, next_run_at=next_after(job.timing, job.id, NOW)) for job in again]
    real = distribution(rearmed, NOW, QUARTER)
    assert real.score == pytest.approx(proposal.after.score, abs=0.1)
    assert not propose(rearmed, NOW, Rules()).moves


def test_it_uses_every_minute_of_a_slot() -> None:
    proposal = propose([hourly() for _ in range(40)], NOW, Rules())
    minutes = Counter(move.timing.anchor_at.minute for move in proposal.moves)
    assert len(minutes) > 20
    assert max(minutes.values()) <= 2


def test_it_moves_no_more_than_it_may_and_only_those_it_is_told() -> None:
    jobs = [hourly() for _ in range(40)]
    assert len(propose(jobs, NOW, Rules(most=3)).moves) == 3
    chosen = {jobs[7].id, jobs[9].id}
    assert {move.job.id for move in propose(jobs, NOW, Rules(), only=chosen).moves} == chosen


def test_it_is_the_same_for_the_same_jobs_in_any_order() -> None:
    jobs = [hourly() for _ in range(30)]
    assert propose(jobs, NOW, Rules()) == propose(jobs[::-1], NOW, Rules())


def test_it_leaves_a_job_alone_that_disturbs_nobody() -> None:
    assert not propose([hourly()], NOW, Rules()).moves
    pair = [armed(Cron(expression="H(0-5) 13 * * *")), armed(Cron(expression="40 20 * * *"))]
    assert not propose(pair, NOW, Rules()).moves


WINDOW = Availability(
    windows=(Window(days=frozenset(range(1, 8)), start=NOON.time(), end=NOON.replace(hour=18).time()),)
)


@pytest.mark.parametrize(
    ("job", "held"),
    [
        (armed(Interval(count=20)), Held.SOON),
        (armed(Cron(expression="30 13 * * *")), Held.FIXED),
        (armed(Frequency(frequency="hourly", minute=45)), Held.FIXED),
        (armed(Frequency(frequency="daily", hour=15)), Held.FIXED),
        (armed(Once(run_at=NOON + 3 * HOUR)), Held.FIXED),
        (armed(Cron(expression="H/40 * * * *")), Held.FIXED),
        (armed(Interval(count=2, unit=IntervalUnit.HOURS, after_completion=True)), Held.FIXED),
        (hourly(bounds={"start_at": NOON}), Held.BOUNDED),
        (hourly(bounds={"end_at": NOON + 48 * HOUR}), Held.BOUNDED),
        (armed(Interval(count=1, unit=IntervalUnit.HOURS), bounds={"availability": WINDOW}), Held.BOUNDED),
        (hourly(depends_on=(JobId("x"),)), Held.LINKED),
        (hourly(on_success_of=(JobId("x"),)), Held.LINKED),
    ],
    ids=lambda value: str(getattr(value, "timing", value))[:80],
)
def test_it_says_why_a_job_stays(job: Job, held: Held) -> None:
    crowd = (
        [armed(Cron(expression=f"{job.next_run_at:%M} * * * *")) for _ in range(10)]
        if job.next_run_at
        else []
    )
    job = replace(job, next_run_at=job.next_run_at or NOON + HOUR)
    proposal = propose([job, *crowd], NOW, Rules(), only={job.id})
    assert (proposal.moves, dict(proposal.held)) == ((), {held: 1})


def test_it_leaves_those_that_must_stay() -> None:
    jobs = [hourly() for _ in range(20)]
    staying = {jobs[0].id: Held.MOVED, jobs[1].id: Held.LINKED}
    proposal = propose(jobs, NOW, Rules(), staying=staying)
    assert dict(proposal.held) == {Held.MOVED: 1, Held.LINKED: 1}
    assert not {move.job.id for move in proposal.moves} & staying.keys()


@pytest.mark.parametrize(
    ("schedule", "fixed_minutes", "pattern"),
    [
        (Cron(expression="H * * * *"), False, r"\d+ * * * *"),
        (Cron(expression="H(0-29) 14 * * MON-FRI"), False, r"\d+ 14 * * MON-FRI"),
        (Cron(expression="15 H * * *"), False, r"15 \d+ * * *"),
        (Cron(expression="H H * * *"), False, r"\d+ \d+ * * *"),
        (Cron(expression="30 0 * * * *"), True, r"30 \d+ * * * *"),
        (Cron(expression="@hourly"), True, r"\d+ * * * *"),
        (Cron(expression="0 14 * * *"), True, r"\d+ 14 * * *"),
        (Frequency(frequency="hourly", minute=0), True, None),
    ],
    ids=str,
)
def test_it_changes_a_cron_text_only_where_it_is_open(
    schedule: Schedule, fixed_minutes: bool, pattern: str | None
) -> None:
    drawn = (armed(schedule) for _ in range(200))  # H differs from job to job
    due = {at: one for one in drawn if (at := one.next_run_at) and at >= NOW + Rules().protection}
    job = due[sorted(due)[len(due) // 2]]  # with room before the crowd, which begins with it
    assert job.next_run_at
    crowd = [
        armed(Interval(count=1, unit=IntervalUnit.HOURS), bounds={"anchor_at": job.next_run_at - HOUR})
        for _ in range(9)
    ]
    proposal = propose([job, *crowd], NOW, Rules(fixed_minutes=fixed_minutes), only={job.id})
    (move,) = proposal.moves
    new = move.timing.schedule
    if pattern is None:
        assert isinstance(new, Frequency)
        assert (new.frequency, new.minute) == ("hourly", move.shift // MINUTE)
        return
    assert isinstance(new, Cron)
    check_cron(new.expression)
    for field, expected in zip(new.expression.split(), pattern.split(), strict=True):
        assert field.isdigit() if expected == r"\d+" else field == expected
    assert next_after(move.timing, job.id, NOW) == move.next_after


CRONS = ["H * * * *", "H H * * *", "H(5-40) */2 * * *", "H 3 * * *", "7 * * * *", "0 H(2-9) * * 1-5"]
schedules = st.one_of(
    st.builds(Interval, count=st.integers(31, 5000)),
    st.builds(Interval, count=st.integers(1, 60), unit=st.just(IntervalUnit.HOURS)),
    st.builds(Cron, expression=st.sampled_from(CRONS)),
    st.builds(Frequency, frequency=st.just("hourly"), minute=st.integers(0, 59)),
)


@settings(max_examples=60, deadline=None)
@given(
    wanted=st.lists(schedules, min_size=1, max_size=25),
    now=st.datetimes(min_value=datetime(2027, 1, 1), max_value=datetime(2027, 12, 1)).map(  # noqa: DTZ001
        lambda naive: at(naive.isoformat())
    ),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    slot=st.sampled_from([5, 15, 60]),
    fixed=st.booleans(),
)
def test_it_never_breaks_a_rhythm(
    wanted: list[Schedule], now: datetime, zone: str, slot: int, fixed: bool
) -> None:
    rules = Rules(slot=slot * MINUTE, fixed_minutes=fixed)
    jobs = [
        armed(one, now, bounds={"timezone": zone, "anchor_at": now - number * timedelta(days=3, minutes=7)})
        for number, one in enumerate(wanted)
    ]
    proposal = propose(jobs, now, rules)
    assert sum(one**2 for one in proposal.after.starts) <= sum(one**2 for one in proposal.before.starts)
    assert proposal.after.total == pytest.approx(proposal.before.total)
    for move in proposal.moves:
        job = move.job
        assert move.shift
        assert min(move.next_before, move.next_after) >= now + rules.protection
        before = list(islice(times(job.timing, job.id, now), 5))
        after = list(islice(times(move.timing, job.id, now), 5))
        assert (before[0], after[0]) == (move.next_before, move.next_after)
        if isinstance(job.timing.schedule, Interval):
            every = job.timing.schedule.every
            assert {later - one for one, later in pairwise(after)} == {every}
            last = before[0] - every
        else:
            found = last_until(job.timing, job.id, now, since=now - timedelta(days=9))
            assert found is not None
            last = found
            wall = (one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in [last, *before])
            assert {one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - move.shift for one in after} <= {
                *wall
            }
        usual = before[0] - last
        assert usual / 2 <= after[0] - last <= usual * 3 / 2
