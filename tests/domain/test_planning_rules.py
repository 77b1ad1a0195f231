"""Planning by example: what is on time, what was missed, windows and calendars, and what a plan costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

import pytest

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.cron import cron_times
from noonday.domain.execution import SkipReason
from noonday.domain.job import CatchUp, Job, JobState, MisfirePolicy
from noonday.domain.planning import Facts, Plan, arm, plan
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Once
from tests.factories import NOON, a_job, a_timing, at

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
LOOKAHEAD = Facts(lookahead=timedelta(seconds=10))
SECONDLY = Interval(count=1, unit=IntervalUnit.SECONDS)
WEEKDAYS = frozenset(range(1, 6))


def minutely(**changes: Any) -> Job:
    return a_job(**({"next_run_at": NOON + MINUTE} | changes))


def times_of(given: Plan) -> list[str]:
    return [f"{fire.scheduled_for:%H:%M}" for fire in given.fires]


def lapses_of(given: Plan) -> list[str]:
    return [
        f"{one.scheduled_for:%H:%M}-{one.through_at:%H:%M} {one.count} {one.reason}" for one in given.lapses
    ]


def every_call(job: Job, facts: Facts, now: datetime) -> tuple[list[Plan], Job]:
    """Plans until the cursor is beyond the horizon, as the planner does."""
    made = []
    while job.next_run_at is not None and job.next_run_at <= now + facts.lookahead:
        made.append(plan(job, facts, now))
        job = replace(job, next_run_at=made[-1].next_run_at, fire_count=made[-1].fire_count)
    return made, job


class TestOnTime:
    def test_nothing_is_due_before_the_horizon(self) -> None:
        job = minutely()
        assert plan(job, LOOKAHEAD, NOON) == Plan(next_run_at=job.next_run_at, fire_count=0)

    def test_it_fires_what_is_due_within_the_lookahead_at_its_own_time(self) -> None:
        given = plan(minutely(fire_count=7), LOOKAHEAD, NOON + timedelta(seconds=55))
        assert times_of(given) == ["12:01"]
        assert given.fires[0].available_at == given.fires[0].scheduled_for == NOON + MINUTE
        assert given.fires[0].covers_from == NOON
        assert (given.lapses, given.next_run_at, given.fire_count) == ((), NOON + 2 * MINUTE, 8)

    def test_a_job_with_nothing_more_to_come_stays_so(self) -> None:
        assert plan(minutely(next_run_at=None), LOOKAHEAD, NOON) == Plan(next_run_at=None, fire_count=0)

    def test_the_horizon_is_inclusive(self) -> None:
        assert times_of(plan(minutely(), LOOKAHEAD, NOON + timedelta(seconds=50))) == ["12:01"]

    @pytest.mark.parametrize("changes", [{"paused": True}, {"enabled": False}, {"state": JobState.CANCELLED}])
    def test_a_job_that_is_not_armed_stays_as_it_is(self, changes: dict[str, Any]) -> None:
        job = minutely(**changes)
        assert plan(job, LOOKAHEAD, NOON + MINUTE) == Plan(next_run_at=job.next_run_at, fire_count=0)

    def test_a_busy_second_is_not_an_outage(self) -> None:
        job = a_job(timing=a_timing(SECONDLY), next_run_at=NOON + SECOND)
        given = plan(job, Facts(lookahead=SECOND), NOON + 2 * SECOND)
        assert [fire.scheduled_for - NOON for fire in given.fires] == [SECOND, 2 * SECOND, 3 * SECOND]

    def test_jitter_only_ever_delays_and_stays_the_same(self) -> None:
        job = minutely(timing=a_timing(jitter=timedelta(seconds=50)))
        first = plan(job, LOOKAHEAD, NOON + MINUTE)
        assert plan(job, LOOKAHEAD, NOON + MINUTE) == first
        delay = first.fires[0].available_at - first.fires[0].scheduled_for
        assert timedelta() < delay <= timedelta(seconds=50)


NOW = NOON + timedelta(minutes=10, seconds=30)  # 12:01 to 12:10 were missed, 12:11 is not yet due
CATCH_UP = [
    # policy, grace in seconds, coalesce: fires, lapses
    (CatchUp.NONE, 300, True, "12:10", ["12:01-12:05 5 misfire", "12:06-12:09 4 coalesced"]),
    (CatchUp.NONE, 300, False, "12:06 12:07 12:08 12:09 12:10", ["12:01-12:05 5 misfire"]),
    (CatchUp.NONE, 30, True, "12:10", ["12:01-12:09 9 misfire"]),
    (CatchUp.NONE, 29, True, "", ["12:01-12:10 10 misfire"]),
    (CatchUp.NONE, 3600, True, "12:10", ["12:01-12:09 9 coalesced"]),
    (CatchUp.LATEST, 0, True, "12:10", ["12:01-12:09 9 coalesced"]),
    (CatchUp.LATEST, 300, False, "12:10", ["12:01-12:09 9 coalesced"]),
    (CatchUp.ALL, 0, True, "12:01 12:02 12:03 12:04 12:05 12:06 12:07 12:08 12:09 12:10", []),
    (CatchUp.ALL, 0, False, "12:01 12:02 12:03 12:04 12:05 12:06 12:07 12:08 12:09 12:10", []),
]


class TestCatchUp:
    @pytest.mark.parametrize(("catch_up", "grace", "coalesce", "fires", "lapses"), CATCH_UP)
    def test_the_policy_decides_about_missed_times(
        self, catch_up: CatchUp, grace: int, coalesce: bool, fires: str, lapses: list[str]
    ) -> None:
        policy = MisfirePolicy(catch_up=catch_up, grace=timedelta(seconds=grace), coalesce=coalesce)
        given = plan(minutely(misfire=policy), LOOKAHEAD, NOW)
        assert times_of(given) == fires.split()
        assert lapses_of(given) == lapses
        assert given.next_run_at == NOON + 11 * MINUTE

    @pytest.mark.parametrize(("catch_up", "grace", "coalesce", "fires", "lapses"), CATCH_UP)
    @pytest.mark.parametrize("cap", [1, 2, 3, 7, 10, 11])
    def test_the_cap_changes_the_rows_but_not_the_fires(
        self, catch_up: CatchUp, grace: int, coalesce: bool, fires: str, lapses: list[str], cap: int
    ) -> None:
        policy = MisfirePolicy(catch_up=catch_up, grace=timedelta(seconds=grace), coalesce=coalesce)
        made, job = every_call(minutely(misfire=policy), Facts(lookahead=SECOND, cap=cap), NOW)
        assert [one for given in made for one in times_of(given)] == fires.split()
        assert sum(one.count for given in made for one in given.lapses) == 10 - len(fires.split())
        assert all(len(given.fires) + sum(one.count for one in given.lapses) <= cap for given in made)
        assert job.next_run_at == NOON + 11 * MINUTE

    def test_a_busy_second_behind_the_cap_covers_nothing(self) -> None:
        policy = MisfirePolicy(grace=timedelta(hours=1))
        job = a_job(schedule=SECONDLY, next_run_at=NOON + SECOND, misfire=policy)
        given = plan(job, Facts(lookahead=timedelta(), cap=3), NOON + 5 * SECOND)
        assert [fire.scheduled_for for fire in given.fires] == [NOON + 3 * SECOND]

    def test_a_covered_time_names_the_one_that_covers_it(self) -> None:
        given = plan(minutely(misfire=MisfirePolicy(catch_up=CatchUp.LATEST)), LOOKAHEAD, NOW)
        assert given.lapses[0].detail == "covered by the run due at 2027-01-01 12:10:00 UTC"

    def test_a_misfire_names_the_grace(self) -> None:
        given = plan(minutely(), LOOKAHEAD, NOW)
        assert given.lapses[0].detail == "missed by more than the grace of 300 s"

    def test_each_run_covers_the_time_since_the_instant_before_it(self) -> None:
        given = plan(minutely(), LOOKAHEAD, NOW)
        assert given.fires[0].covers_from == NOON + 9 * MINUTE

    def test_what_is_on_time_fires_beside_the_newest_missed_one(self) -> None:
        given = plan(minutely(), Facts(lookahead=MINUTE), NOW)
        assert times_of(given) == ["12:10", "12:11"]

    def test_the_grace_begins_at_the_latest_moment_jitter_allows(self) -> None:
        timing, policy = a_timing(jitter=MINUTE), MisfirePolicy(grace=30 * SECOND)
        job = minutely(timing=timing, misfire=policy)
        assert lapses_of(plan(job, LOOKAHEAD, NOW))[0] == "12:01-12:08 8 misfire"

    def test_a_year_of_a_fast_interval_is_one_row(self) -> None:
        job = a_job(schedule=SECONDLY, next_run_at=NOON + SECOND)
        now = NOON + timedelta(days=365)
        given = plan(job, LOOKAHEAD, now)
        missed, covered = given.lapses
        assert (missed.reason, missed.count, missed.exact) == (
            SkipReason.MISFIRE,
            365 * 86_400 - 301,
            True,
        )
        assert (covered.reason, covered.count) == (SkipReason.COALESCED, 298)
        assert [fire.scheduled_for - now for fire in given.fires[:2]] == [-2 * SECOND, -SECOND]
        assert given.next_run_at == now + 11 * SECOND

    def test_without_any_grace_a_busy_second_still_fires_after_a_year(self) -> None:
        policy = MisfirePolicy(grace=timedelta())
        job = a_job(schedule=SECONDLY, next_run_at=NOON + SECOND, misfire=policy)
        now = NOON + timedelta(days=365)
        given = plan(job, Facts(lookahead=timedelta()), now)
        assert [fire.scheduled_for - now for fire in given.fires] == [-SECOND, timedelta()]

    def test_what_is_just_within_a_long_grace_is_not_leapt_over(self) -> None:
        policy = MisfirePolicy(grace=2000 * SECOND, coalesce=False)
        job = a_job(schedule=SECONDLY, next_run_at=NOON + SECOND, misfire=policy)
        given = plan(job, LOOKAHEAD, NOON + 2001 * SECOND)
        assert given.fires[0].scheduled_for == NOON + SECOND
        assert not given.lapses

    def test_the_latest_of_a_year_of_a_fast_interval(self) -> None:
        policy = MisfirePolicy(catch_up=CatchUp.LATEST)
        job = a_job(schedule=SECONDLY, next_run_at=NOON + SECOND, misfire=policy)
        now = NOON + timedelta(days=365)
        given = plan(job, Facts(lookahead=timedelta()), now)
        (covered,) = given.lapses
        assert covered.count == 365 * 86_400 - 3
        assert [fire.scheduled_for - now for fire in given.fires] == [-2 * SECOND, -SECOND, timedelta()]

    def test_an_interval_that_ended_during_the_outage_is_over(self) -> None:
        timing = a_timing(SECONDLY, end_at=NOON + timedelta(hours=1))
        given = plan(a_job(timing=timing, next_run_at=NOON + SECOND), LOOKAHEAD, NOON + timedelta(days=1))
        assert [(one.count, one.through_at) for one in given.lapses] == [(3600, timing.end_at)]
        assert (given.fires, given.next_run_at) == ((), None)

    def test_an_immediate_job_runs_however_late(self) -> None:
        job = a_job(schedule=Immediate(), next_run_at=NOON)
        given = plan(job, LOOKAHEAD, NOON + timedelta(days=3))
        assert (times_of(given), given.next_run_at) == (["12:00"], None)

    def test_a_single_run_missed_by_more_than_the_grace_is_a_misfire(self) -> None:
        job = a_job(schedule=Once(run_at=NOON), next_run_at=NOON)
        given = plan(job, LOOKAHEAD, NOON + timedelta(seconds=301))
        assert (lapses_of(given), given.next_run_at) == (["12:00-12:00 1 misfire"], None)
        assert times_of(plan(job, LOOKAHEAD, NOON + timedelta(seconds=300))) == ["12:00"]


def office(outside: Outside = Outside.SKIP, **calendar: Any) -> Availability:
    hours = Window(days=WEEKDAYS, start=time(8), end=time(18))
    return Availability(windows=(hours,), calendar=Calendar(**calendar), outside=outside)


FRIDAY_EVENING = at("2027-01-08T17:59:00")
MONDAY_MORNING = at("2027-01-11T08:00:00")


class TestAvailability:
    def hourly(self, **changes: Any) -> Job:
        timing = a_timing(Cron(expression="0 * * * *"), availability=office(), **changes)
        return a_job(timing=timing, next_run_at=at("2027-01-08T17:00:00"))

    def test_the_cursor_jumps_to_the_opening_and_the_closed_hours_are_one_row(self) -> None:
        given = plan(self.hourly(), LOOKAHEAD, at("2027-01-08T17:00:00"))
        assert times_of(given) == ["17:00"]
        (closed,) = given.lapses
        assert (closed.scheduled_for, closed.through_at) == (
            at("2027-01-08T18:00:00"),
            at("2027-01-11T07:00:00"),
        )
        assert (closed.count, closed.exact, closed.reason) == (62, True, SkipReason.WINDOW)
        assert given.next_run_at == MONDAY_MORNING

    def test_each_reason_has_its_own_row(self) -> None:
        timing = a_timing(
            Cron(expression="0 */6 * * *"), availability=office(excluded_dates={MONDAY_MORNING.date()})
        )
        job = a_job(timing=timing, next_run_at=at("2027-01-08T12:00:00"))
        given = plan(job, LOOKAHEAD, at("2027-01-08T12:00:00"))
        assert [(one.reason, one.count) for one in given.lapses] == [
            (SkipReason.WINDOW, 9),
            (SkipReason.CALENDAR, 4),
            (SkipReason.WINDOW, 2),
        ]
        assert given.next_run_at == at("2027-01-12T12:00:00")

    def test_a_long_closure_is_counted_up_to_the_cap(self) -> None:
        job = minutely(timing=a_timing(availability=office()), next_run_at=FRIDAY_EVENING)
        given = plan(job, Facts(lookahead=SECOND, cap=100), FRIDAY_EVENING)
        (closed,) = given.lapses
        assert (closed.count, closed.exact) == (199, False)
        assert str(closed.detail).endswith("outside the windows; not all of them are counted")
        assert closed.through_at == MONDAY_MORNING - MINUTE
        assert given.next_run_at == MONDAY_MORNING

    def test_a_long_closure_of_an_interval_is_counted_exactly(self) -> None:
        timing = a_timing(SECONDLY, availability=office())
        job = a_job(timing=timing, next_run_at=FRIDAY_EVENING)
        given = plan(job, Facts(lookahead=SECOND, cap=100), FRIDAY_EVENING + timedelta(seconds=59))
        (closed,) = given.lapses[-1:]
        assert (closed.count, closed.exact) == (62 * 3600, True)
        assert given.next_run_at == MONDAY_MORNING

    def test_a_closure_after_a_fire_does_not_swallow_the_fire(self) -> None:
        """The cap ends the walk just behind a fire, with a lapse of the same reason before it."""
        timing = a_timing(Cron(expression="0 7,8,18,19 * * *"), availability=office())
        job = a_job(timing=timing, next_run_at=MONDAY_MORNING - timedelta(hours=1))
        given = plan(job, Facts(lookahead=MINUTE, cap=2), MONDAY_MORNING)
        assert times_of(given) == ["08:00"]
        assert lapses_of(given) == ["07:00-07:00 1 window", "18:00-07:00 2 window"]
        assert [one.exact for one in given.lapses] == [True, False]
        assert given.next_run_at == MONDAY_MORNING + timedelta(days=1)

    def test_a_closure_for_another_reason_than_the_one_before_is_its_own_row(self) -> None:
        """The cap ends the walk at the turn from window to calendar."""
        excluded = frozenset({MONDAY_MORNING.date()})
        timing = a_timing(Cron(expression="0 7,12 * * *"), availability=office(excluded_dates=excluded))
        job = a_job(timing=timing, next_run_at=at("2027-01-08T12:00:00"))
        given = plan(job, Facts(lookahead=MINUTE, cap=5), at("2027-01-08T12:00:00"))
        assert [(one.reason, one.count) for one in given.lapses] == [
            (SkipReason.WINDOW, 4),
            (SkipReason.CALENDAR, 3),
        ]
        assert given.next_run_at == at("2027-01-12T12:00:00")

    def test_one_run_is_moved_to_the_opening_and_stands_for_the_others(self) -> None:
        timing = a_timing(Cron(expression="30 * * * *"), availability=office(Outside.MOVE))
        job = a_job(timing=timing, next_run_at=at("2027-01-08T17:30:00"))
        friday = plan(job, LOOKAHEAD, at("2027-01-08T17:30:00"))
        assert lapses_of(friday) == ["18:30-06:30 61 window"]
        assert friday.next_run_at == at("2027-01-11T07:30:00")
        monday = plan(replace(job, next_run_at=friday.next_run_at), LOOKAHEAD, at("2027-01-11T07:30:00"))
        assert [(fire.scheduled_for, fire.available_at) for fire in monday.fires] == [
            (at("2027-01-11T07:30:00"), MONDAY_MORNING)
        ]

    def test_a_moved_run_is_late_only_after_the_opening(self) -> None:
        timing = a_timing(Cron(expression="30 3 * * *"), availability=office(Outside.MOVE))
        job = a_job(timing=timing, next_run_at=at("2027-01-11T03:30:00"))
        assert len(plan(job, LOOKAHEAD, MONDAY_MORNING).fires) == 1
        late = plan(job, LOOKAHEAD, MONDAY_MORNING + timedelta(seconds=301))
        assert [one.reason for one in late.lapses] == [SkipReason.MISFIRE]

    def test_times_outside_are_not_taken_for_missed_ones(self) -> None:
        policy = MisfirePolicy(catch_up=CatchUp.LATEST)
        job = replace(self.hourly(), misfire=policy)
        given = plan(job, LOOKAHEAD, at("2027-01-10T12:30:00"))
        assert times_of(given) == ["17:00"]
        assert [(one.reason, one.count) for one in given.lapses] == [(SkipReason.WINDOW, 62)]

    def test_the_newest_missed_time_is_found_behind_a_closure_longer_than_the_cap(self) -> None:
        job = replace(self.hourly(), misfire=MisfirePolicy(catch_up=CatchUp.LATEST))
        made, _ = every_call(job, Facts(lookahead=SECOND, cap=5), at("2027-01-11T09:30:00"))
        assert [one for given in made for one in times_of(given)] == ["09:00"]

    def test_a_schedule_that_never_meets_its_windows_is_over(self) -> None:
        sundays = a_timing(Cron(expression="0 12 * * SUN"), availability=office())
        given = arm(a_job(timing=sundays), NOON)
        assert given.next_run_at is None
        assert given.lapses


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    asked: list[datetime] = []

    def counted(expression: str, key: str, zone: str, after: datetime) -> Iterator[datetime]:
        asked.append(after)
        return cron_times(expression, key, zone, after)

    def counted_once(expression: str, key: str, zone: str, after: datetime) -> datetime | None:
        return next(counted(expression, key, zone, after), None)

    monkeypatch.setattr("noonday.domain.instants.cron_times", counted)
    monkeypatch.setattr("noonday.domain.instants.cron_after", counted_once)
    monkeypatch.setattr("noonday.domain.straight._steps", {})
    return asked


@pytest.mark.parametrize("expression", ["* * * * *", "*/5 * * * *", "0 12 * * *"])
def test_a_plain_cron_job_costs_two_evaluations(expression: str, evaluations: list[datetime]) -> None:
    due = at("2027-02-01T12:00")
    given = plan(a_job(schedule=Cron(expression=expression), next_run_at=due), LOOKAHEAD, due)
    assert len(given.fires) == 1
    assert len(evaluations) == 2


def test_its_next_time_costs_one_and_that_of_a_job_like_it_none(evaluations: list[datetime]) -> None:
    due, every = at("2027-02-01T12:00"), Cron(expression="* * * * *")
    job, like_it = a_job(schedule=every, next_run_at=due), a_job(schedule=every, next_run_at=due)
    for count in (2, 3, 4):
        assert job.next_run_at is not None
        made = plan(job, LOOKAHEAD, job.next_run_at)
        assert plan(like_it, LOOKAHEAD, job.next_run_at) == made
        assert len(evaluations) == count
        job, like_it = (
            replace(one, next_run_at=made.next_run_at, fire_count=count - 1) for one in (job, like_it)
        )
