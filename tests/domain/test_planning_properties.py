"""Planning for any schedule, policy, cap and outage: every raw instant is accounted for, exactly once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import islice, takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.job import CatchUp, Job, MisfirePolicy
from noonday.domain.occurrences import Occurrence, occurrences, times
from noonday.domain.planning import Facts, Fire, Lapse, Plan, arm, plan
from noonday.domain.schedule import Cron, Frequency, Interval, IntervalUnit, Schedule, Timing
from tests.factories import a_job, at

START = at("2027-03-26T16:30:00")  # a Friday afternoon, two days before Europe's clocks change
TICK = timedelta.resolution

# Each with its usual step, by which outages are measured: so no case has more than some hundred instants.
FAST = timedelta(seconds=30)  # steps below it come without windows, which are closed for days
SCHEDULES: list[tuple[Schedule, timedelta]] = [
    (Cron(expression="* * * * *"), timedelta(minutes=1)),
    (Cron(expression="*/20 * * * * *"), timedelta(seconds=20)),
    (Cron(expression="*/7 * * * *"), timedelta(minutes=7)),
    (Cron(expression="H/15 * * * *"), timedelta(minutes=15)),
    (Cron(expression="0 9-17 * * MON-FRI"), timedelta(hours=3)),
    (Cron(expression="30 1,2 * * *"), timedelta(hours=12)),
    (Interval(count=1, unit=IntervalUnit.SECONDS), timedelta(seconds=1)),
    (Interval(count=90, unit=IntervalUnit.SECONDS), timedelta(seconds=90)),
    (Interval(count=5, unit=IntervalUnit.HOURS), timedelta(hours=5)),
    (Frequency(frequency="daily", hour=2, minute=30), timedelta(days=1)),
    (Frequency(frequency="weekly", day=7, hour=3), timedelta(days=7)),
]
OFFICE = Window(days=frozenset(range(1, 6)), start=time(8), end=time(18))
NIGHT = Window(days=frozenset(range(1, 8)), start=time(22), end=time(2, 40))
AVAILABILITIES = [
    Availability(),
    Availability(windows=(OFFICE,)),
    Availability(windows=(OFFICE,), outside=Outside.MOVE),
    Availability(windows=(NIGHT,), outside=Outside.MOVE),
    Availability(calendar=Calendar(excluded_dates=frozenset({date(2027, 3, 27), date(2027, 3, 29)}))),
    Availability(windows=(OFFICE, NIGHT), calendar=Calendar(excluded_dates=frozenset({date(2027, 3, 28)}))),
]


@dataclass(frozen=True)
class Story:
    """A job and the moments at which somebody plans it, with outages between them."""

    job: Job
    nows: tuple[datetime, ...]
    facts: Facts


@st.composite
def jobs(draw: st.DrawFn, bounded: bool = True) -> tuple[Job, timedelta]:
    schedule, step = draw(st.sampled_from(SCHEDULES))
    timing = Timing(
        schedule=schedule,
        anchor_at=START,
        timezone=draw(st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])),
        end_at=draw(st.none() | st.integers(0, 60).map(lambda n: START + n * step)) if bounded else None,
        max_runs=draw(st.none() | st.integers(1, 30)) if bounded else None,
        jitter=draw(st.sampled_from([timedelta(), timedelta(seconds=30), timedelta(hours=2)])),
        availability=draw(st.sampled_from(AVAILABILITIES)) if step > FAST else Availability(),
    )
    policy = MisfirePolicy(
        grace=draw(st.sampled_from([timedelta(), timedelta(seconds=300), 3 * step, timedelta(days=30)])),
        coalesce=draw(st.booleans()),
        catch_up=draw(st.sampled_from(CatchUp)),
    )
    return a_job(timing=timing, misfire=policy), step


@st.composite
def stories(draw: st.DrawFn, bounded: bool = True) -> Story:
    job, step = draw(jobs(bounded))
    now, nows = START, []
    for periods in draw(st.lists(st.floats(0, 25), min_size=1, max_size=4)):
        now += step * periods
        nows.append(now)
    lookahead = draw(st.sampled_from([timedelta(), timedelta(seconds=10), 3 * step]))
    cap = draw(st.sampled_from([1, 2, 3, 5, 17, 1000]))
    return Story(job=job, nows=tuple(nows), facts=Facts(lookahead=lookahead, cap=cap))


def planned(job: Job, facts: Facts, now: datetime) -> tuple[list[Plan], Job]:
    """All calls at one moment, until the cursor is beyond the horizon."""
    made: list[Plan] = []
    while job.next_run_at is not None and job.next_run_at <= now + facts.lookahead:
        made.append(plan(job, facts, now))
        assert made[-1].next_run_at is None or made[-1].next_run_at > job.next_run_at, "the cursor moves on"
        job = replace(job, next_run_at=made[-1].next_run_at, fire_count=made[-1].fire_count)
    return made, job


def told(story: Story) -> tuple[list[Plan], Job]:
    armed = arm(story.job, START)
    job, made = replace(story.job, next_run_at=armed.next_run_at), [armed]
    for now in story.nows:
        more, job = planned(job, story.facts, now)
        made += more
    return made, job


def fires_of(made: list[Plan]) -> list[Fire]:
    return [fire for one in made for fire in one.fires]


def lapses_of(made: list[Plan]) -> list[Lapse]:
    return [lapse for one in made for lapse in one.lapses]


def raw(job: Job, last: datetime) -> list[datetime]:
    return list(takewhile(lambda due: due <= last, times(job.timing, job.id, START)))


@given(story=stories())
@settings(max_examples=150, deadline=None)
def test_every_raw_instant_is_in_exactly_one_fire_or_lapse(story: Story) -> None:
    made, job = told(story)
    fires, lapses = fires_of(made), lapses_of(made)
    reach = max([START, *(f.scheduled_for for f in fires), *(one.through_at for one in lapses)])
    instants = raw(job, reach if job.next_run_at is None else job.next_run_at - TICK)
    covered = [fire.scheduled_for for fire in fires]
    for one in lapses:
        within = [due for due in instants if one.scheduled_for <= due <= one.through_at]
        assert within[0] == one.scheduled_for
        assert within[-1] == one.through_at
        assert one.count == len(within) if one.exact else one.count <= len(within)
        assert one.exact or one.count >= story.facts.cap
        covered += within
    assert sorted(covered) == instants


@given(story=stories())
@settings(max_examples=60, deadline=None)
def test_no_fire_is_early_and_each_knows_the_instant_before_it(story: Story) -> None:
    made, job = told(story)
    for fire in fires_of(made):
        assert fire.available_at >= fire.scheduled_for
        assert fire.covers_from < fire.scheduled_for
        assert next(times(job.timing, job.id, fire.covers_from)) == fire.scheduled_for


@given(story=stories())
@settings(max_examples=60, deadline=None)
def test_max_runs_is_never_exceeded_and_fires_are_counted(story: Story) -> None:
    made, job = told(story)
    assert job.fire_count == len(fires_of(made))
    if job.timing.max_runs is not None:
        assert job.fire_count <= job.timing.max_runs
        if job.fire_count == job.timing.max_runs:
            assert job.next_run_at is None


@given(story=stories())
@settings(max_examples=60, deadline=None)
def test_the_cursor_rests_on_a_time_that_really_fires(story: Story) -> None:
    _, job = told(story)
    if job.next_run_at is not None:
        first = next(occurrences(job.timing, job.id, job.next_run_at - TICK))
        assert (first.due_at, first.skip) == (job.next_run_at, None)
        assert job.next_run_at > story.nows[-1] + story.facts.lookahead


@given(job=jobs(), later=st.floats(0, 40))
@settings(max_examples=100, deadline=None)
def test_arming_finds_the_first_time_that_will_fire(job: tuple[Job, timedelta], later: float) -> None:
    made, step = job
    now = START + step * later
    found = islice(occurrences(made.timing, made.id, now), 5000)  # a weekend has 3,720 minutes
    first = next((one.due_at for one in found if one.skip is None), None)
    armed = arm(made, now)
    assert (armed.next_run_at, armed.fires, armed.fire_count) == (first, (), 0)


def expected_fires(job: Job, start: datetime, facts: Facts, now: datetime) -> list[datetime]:
    """The rule written down plainly, over all instants at once."""
    due = takewhile(
        lambda one: one.due_at <= now + facts.lookahead, occurrences(job.timing, job.id, start - TICK)
    )
    open_ones = [one for one in due if one.skip is None]
    policy = job.misfire

    def late(one: Occurrence) -> timedelta:
        return now - one.available_at

    missed = [one for one in open_ones if late(one) > timedelta(seconds=1)]
    if policy.catch_up is CatchUp.NONE:
        missed = [one for one in missed if late(one) <= policy.grace + job.timing.jitter]
    if policy.catch_up is CatchUp.LATEST or (policy.catch_up is CatchUp.NONE and policy.coalesce):
        missed = missed[-1:]
    fires = missed + [one for one in open_ones if late(one) <= timedelta(seconds=1)]
    left = None if job.timing.max_runs is None else job.timing.max_runs - job.fire_count
    return [one.due_at for one in fires][:left]


@given(story=stories())
@settings(max_examples=150, deadline=None)
def test_after_any_outage_the_policy_decides_whatever_the_cap(story: Story) -> None:
    job = replace(story.job, next_run_at=arm(story.job, START).next_run_at)
    for now in story.nows:
        if job.next_run_at is None:
            break
        expected = expected_fires(job, job.next_run_at, story.facts, now)
        made, job = planned(job, story.facts, now)
        assert [fire.scheduled_for for fire in fires_of(made)] == expected


def skipped_instants(job: Job, made: list[Plan], until: datetime) -> dict[datetime, str]:
    """Each skipped instant up to `until` with its reason."""
    return {
        due: one.reason.value
        for one in lapses_of(made)
        for due in raw(job, min(one.through_at, until))
        if due >= one.scheduled_for
    }


@given(drawn=jobs(), parts=st.lists(st.floats(0.01, 1), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_many_small_steps_equal_one_when_nothing_is_missed(
    drawn: tuple[Job, timedelta], parts: list[float]
) -> None:
    job, step = drawn
    armed = replace(job, next_run_at=arm(job, START).next_run_at)
    whole = sum(parts) * step
    at_once, after_one = planned(armed, Facts(lookahead=whole), START)
    in_steps, now, after_many = [], START, armed
    for part in parts:
        more, after_many = planned(after_many, Facts(lookahead=part * step), now)
        in_steps += more
        now += part * step
    more, after_many = planned(after_many, Facts(lookahead=START + whole - now), now)
    in_steps += more
    assert fires_of(in_steps) == fires_of(at_once)
    assert after_many == after_one
    assert skipped_instants(job, in_steps, START + whole) == skipped_instants(job, at_once, START + whole)


@given(story=stories(bounded=False))
@settings(max_examples=60, deadline=None)
def test_planning_again_from_an_old_cursor_meets_the_same_slots(story: Story) -> None:
    """A second planner, or one that died before its commit, makes no other slots and none of them twice."""
    job = replace(story.job, next_run_at=arm(story.job, START).next_run_at)
    for now in story.nows:
        made, after = planned(job, story.facts, now)
        assert planned(job, story.facts, now) == (made, after)
        slots = [fire.scheduled_for for fire in fires_of(made)]
        slots += [one.scheduled_for for one in lapses_of(made)]
        assert len(slots) == len(set(slots))
        if after.next_run_at is not None:
            assert set(slots) <= set(raw(job, after.next_run_at - TICK))
        job = after
