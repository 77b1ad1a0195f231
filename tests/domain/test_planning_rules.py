"""Planning by example: catch-up, windows, bounds, arming, lapses, fixed delay, and what a plan costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

import pytest
from tests.factories import NOON, a_job, a_timing, at

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.cron import cron_times
from noonday.domain.execution import SkipReason
from noonday.domain.job import CatchUp, Job, JobState, MisfirePolicy
from noonday.domain.lifecycle import next_after_completion
from noonday.domain.planning import Facts, Plan, arm, lapse, plan
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, IntervalUnit, Manual, Once

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


class TestBounds:
    def test_it_stops_at_max_runs(self) -> None:
        job = minutely(timing=a_timing(max_runs=3), fire_count=1, misfire=MisfirePolicy(catch_up=CatchUp.ALL))
        given = plan(job, LOOKAHEAD, NOW)
        assert (times_of(given), given.next_run_at, given.fire_count) == (["12:01", "12:02"], None, 3)

    def test_nothing_fires_when_the_runs_are_used_up(self) -> None:
        job = minutely(timing=a_timing(max_runs=3), fire_count=3)
        assert plan(job, LOOKAHEAD, NOW) == Plan(next_run_at=None, fire_count=3)
        assert arm(job, NOW) == Plan(next_run_at=None, fire_count=3)

    def test_skips_are_not_runs(self) -> None:
        job = minutely(timing=a_timing(max_runs=1), misfire=MisfirePolicy(grace=SECOND))
        given = plan(job, LOOKAHEAD, NOW)
        assert (given.fires, given.next_run_at) == ((), NOON + 11 * MINUTE)

    def test_it_ends_at_end_at(self) -> None:
        job = minutely(timing=a_timing(end_at=NOON + 2 * MINUTE))
        first = plan(job, LOOKAHEAD, NOON + MINUTE)
        assert first.next_run_at == NOON + 2 * MINUTE
        last = plan(replace(job, next_run_at=first.next_run_at), LOOKAHEAD, NOON + 2 * MINUTE)
        assert (times_of(last), last.next_run_at) == (["12:02"], None)

    def test_the_first_run_covers_from_the_anchor(self) -> None:
        job = a_job(schedule=Cron(expression="0 0 1 1 *"), next_run_at=at("2028-01-01"))
        assert plan(job, LOOKAHEAD, at("2028-01-01")).fires[0].covers_from == NOON

    @pytest.mark.parametrize(
        ("expression", "due", "before"),
        [
            ("0 9 * * MON-FRI", "2027-02-01T09:00", "2027-01-29T09:00"),
            ("0,10,20,40 * * * *", "2027-02-01T00:20", "2027-02-01T00:10"),
            ("* * 9-16 * * MON-FRI", "2027-02-01T09:00:00", "2027-01-29T16:59:59"),
            ("0 0 29 2 *", "2032-02-29", "2028-02-29"),
        ],
    )
    def test_it_finds_the_instant_before_in_uneven_schedules(
        self, expression: str, due: str, before: str
    ) -> None:
        job = a_job(schedule=Cron(expression=expression), next_run_at=at(due))
        assert plan(job, LOOKAHEAD, at(due)).fires[0].covers_from == at(before)


class TestArm:
    @pytest.mark.parametrize(
        ("schedule", "expected"),
        [
            (Cron(expression="* * * * *"), NOON + MINUTE),
            (Interval(count=5), NOON + 5 * MINUTE),
            (Frequency(frequency="daily", hour=2), at("2027-01-02T02:00")),
            (Immediate(), NOON),
            (Once(run_at=NOON + MINUTE), NOON + MINUTE),
            (Once(run_at=NOON), NOON),
            (Once(run_at=NOON - 5 * MINUTE), NOON - 5 * MINUTE),
            (Once(run_at=NOON - 6 * MINUTE), None),
            (Event(), None),
            (Manual(), None),
        ],
    )
    def test_a_new_job_begins_with_its_first_time(self, schedule: Any, expected: datetime | None) -> None:
        given = arm(a_job(schedule=schedule), NOON)
        assert (given.fires, given.next_run_at, given.fire_count) == ((), expected, 0)

    def test_a_resumed_job_goes_on_with_its_next_time_and_does_not_reach_back(self) -> None:
        job = minutely(fire_count=3, misfire=MisfirePolicy(catch_up=CatchUp.ALL))
        assert arm(job, NOW) == Plan(next_run_at=NOON + 11 * MINUTE, fire_count=3)

    def test_a_single_run_long_past_is_recorded_as_misfire(self) -> None:
        given = arm(a_job(schedule=Once(run_at=NOON - timedelta(days=1))), NOON)
        assert lapses_of(given) == ["12:00-12:00 1 misfire"]

    def test_a_single_run_long_past_is_caught_up_if_asked_for(self) -> None:
        policy = MisfirePolicy(catch_up=CatchUp.ALL)
        job = a_job(schedule=Once(run_at=NOON - timedelta(days=1)), misfire=policy)
        assert arm(job, NOON).next_run_at == NOON - timedelta(days=1)

    @pytest.mark.parametrize("schedule", [Immediate(), Once(run_at=NOON)])
    def test_what_has_run_does_not_run_again(self, schedule: Any) -> None:
        job = a_job(schedule=schedule, fire_count=1, last_run_at=NOON + SECOND)
        assert arm(job, NOON + MINUTE).next_run_at is None

    def test_a_run_moved_to_a_later_date_is_armed_again(self) -> None:
        job = a_job(schedule=Once(run_at=NOON + MINUTE), fire_count=1, last_run_at=NOON - MINUTE)
        assert arm(job, NOON).next_run_at == NOON + MINUTE

    def test_it_arms_an_immediate_job_however_long_ago(self) -> None:
        assert arm(a_job(schedule=Immediate()), NOON + timedelta(days=1)).next_run_at == NOON

    def test_closed_times_ahead_are_recorded(self) -> None:
        job = a_job(timing=a_timing(Cron(expression="0 * * * *"), availability=office()))
        given = arm(job, at("2027-01-08T17:30:00"))
        assert lapses_of(given) == ["18:00-07:00 62 window"]
        assert given.next_run_at == MONDAY_MORNING

    def test_a_single_run_in_closed_hours_is_skipped(self) -> None:
        sunday = at("2027-01-10T12:00:00")
        given = arm(a_job(timing=a_timing(Once(run_at=sunday), availability=office())), NOON)
        assert (lapses_of(given), given.next_run_at) == (["12:00-12:00 1 window"], None)


class TestFixedDelay:
    def job(self, **changes: Any) -> Job:
        timing = a_timing(
            Interval(count=5, after_completion=True),
            **{name: changes.pop(name) for name in ("end_at", "max_runs", "availability") if name in changes},
        )
        return a_job(timing=timing, **changes)

    def test_it_fires_once_and_has_no_next_time_until_it_has_run(self) -> None:
        due = NOON + 5 * MINUTE
        given = plan(self.job(next_run_at=due, last_run_at=NOON), LOOKAHEAD, due)
        assert (times_of(given), given.next_run_at, given.fire_count) == (["12:05"], None, 1)
        assert given.fires[0].covers_from == NOON

    def test_it_fires_however_late_for_else_it_would_never_run_again(self) -> None:
        given = plan(self.job(next_run_at=NOON), LOOKAHEAD, NOON + timedelta(days=9))
        assert (times_of(given), given.lapses) == (["12:00"], ())

    def test_the_end_of_a_run_makes_the_next_one_due(self) -> None:
        assert next_after_completion(self.job(), NOW) == NOW + 5 * MINUTE

    @pytest.mark.parametrize(
        "schedule", [Interval(count=5), Cron(expression="@daily"), Immediate(), Manual()]
    )
    def test_no_other_schedule_counts_from_the_end(self, schedule: Any) -> None:
        assert next_after_completion(a_job(schedule=schedule), NOW) is None

    def test_bounds_end_the_chain(self) -> None:
        assert next_after_completion(self.job(max_runs=2, fire_count=2), NOW) is None
        assert next_after_completion(self.job(max_runs=2, fire_count=1), NOW) is not None
        assert next_after_completion(self.job(end_at=NOW + 4 * MINUTE), NOW) is None

    @pytest.mark.parametrize("outside", list(Outside))
    def test_closed_hours_only_delay_it(self, outside: Outside) -> None:
        job = self.job(availability=office(outside))
        assert next_after_completion(job, FRIDAY_EVENING) == MONDAY_MORNING
        assert arm(job, FRIDAY_EVENING).next_run_at == MONDAY_MORNING

    @pytest.mark.parametrize(
        ("last_run_at", "now", "expected"),
        [
            (None, NOON, NOON + 5 * MINUTE),
            (None, NOON + MINUTE, NOON + 5 * MINUTE),
            (None, NOW, NOW + 5 * MINUTE),
            (NOW - MINUTE, NOW, NOW + 4 * MINUTE),
            (NOON, NOW, NOW + 5 * MINUTE),
        ],
    )
    def test_it_is_armed_in_the_future(
        self, last_run_at: datetime | None, now: datetime, expected: datetime
    ) -> None:
        assert arm(self.job(last_run_at=last_run_at), now).next_run_at == expected

    def test_its_only_pending_time_can_lapse(self) -> None:
        job = self.job(next_run_at=NOON)
        given = lapse(job, NOON - MINUTE, NOON + MINUTE, SkipReason.PAUSED)
        assert given is not None
        assert (given.scheduled_for, given.through_at, given.count) == (NOON, NOON, 1)
        assert lapse(job, NOON + MINUTE, NOON + 2 * MINUTE, SkipReason.PAUSED) is None


class TestLapse:
    def test_it_counts_the_times_of_a_period(self) -> None:
        given = lapse(minutely(), NOON + MINUTE, NOW, SkipReason.PAUSED, "paused by ann")
        assert given is not None
        assert (given.scheduled_for, given.through_at) == (NOON + MINUTE, NOON + 10 * MINUTE)
        assert (given.count, given.exact, given.reason) == (10, True, SkipReason.PAUSED)
        assert given.detail == "paused by ann"

    def test_a_period_without_times_is_no_lapse(self) -> None:
        assert lapse(minutely(), NOON + SECOND, NOON + 59 * SECOND, SkipReason.PAUSED) is None
        assert lapse(minutely(), NOW, NOON, SkipReason.PAUSED) is None
        assert lapse(a_job(schedule=Manual()), NOON, NOW, SkipReason.PAUSED) is None

    def test_both_ends_belong_to_it(self) -> None:
        given = lapse(minutely(), NOON + MINUTE, NOON + 2 * MINUTE, SkipReason.PAUSED)
        assert given is not None
        assert given.count == 2

    def test_a_long_one_is_counted_up_to_the_cap_but_reaches_to_its_end(self) -> None:
        given = lapse(minutely(), NOON + MINUTE, NOON + timedelta(days=30), SkipReason.PAUSED)
        assert given is not None
        assert (given.count, given.exact) == (1000, False)
        assert given.through_at == NOON + timedelta(days=30)


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    asked: list[datetime] = []

    def counted(expression: str, key: str, zone: str, after: datetime) -> Iterator[datetime]:
        asked.append(after)
        return cron_times(expression, key, zone, after)

    monkeypatch.setattr("noonday.domain.instants.cron_times", counted)
    return asked


@pytest.mark.parametrize("expression", ["* * * * *", "*/5 * * * *", "0 12 * * *"])
def test_a_plain_cron_job_costs_two_evaluations(expression: str, evaluations: list[datetime]) -> None:
    due = at("2027-02-01T12:00")
    given = plan(a_job(schedule=Cron(expression=expression), next_run_at=due), LOOKAHEAD, due)
    assert len(given.fires) == 1
    assert len(evaluations) == 2
