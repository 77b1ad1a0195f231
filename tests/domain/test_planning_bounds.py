"""Planning by example: bounds, arming, fixed delay, and periods in which nothing ran."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

import pytest

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.execution import SkipReason
from noonday.domain.job import CatchUp, Job, MisfirePolicy
from noonday.domain.lifecycle import next_after_completion
from noonday.domain.planning import Facts, Plan, arm, lapse, plan
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, Manual, Once
from tests.factories import NOON, a_job, a_timing, at

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
LOOKAHEAD = Facts(lookahead=timedelta(seconds=10))
WEEKDAYS = frozenset(range(1, 6))


def minutely(**changes: Any) -> Job:
    return a_job(**({"next_run_at": NOON + MINUTE} | changes))


def times_of(given: Plan) -> list[str]:
    return [f"{fire.scheduled_for:%H:%M}" for fire in given.fires]


def lapses_of(given: Plan) -> list[str]:
    return [
        f"{one.scheduled_for:%H:%M}-{one.through_at:%H:%M} {one.count} {one.reason}" for one in given.lapses
    ]


NOW = NOON + timedelta(minutes=10, seconds=30)  # 12:01 to 12:10 were missed, 12:11 is not yet due


def office(outside: Outside = Outside.SKIP, **calendar: Any) -> Availability:
    hours = Window(days=WEEKDAYS, start=time(8), end=time(18))
    return Availability(windows=(hours,), calendar=Calendar(**calendar), outside=outside)


FRIDAY_EVENING = at("2027-01-08T17:59:00")
MONDAY_MORNING = at("2027-01-11T08:00:00")


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
    @pytest.mark.parametrize("last_run_at", [NOON, NOON + SECOND])
    def test_what_has_run_does_not_run_again(self, schedule: Any, last_run_at: datetime) -> None:
        job = a_job(schedule=schedule, fire_count=1, last_run_at=last_run_at)
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
        assert next_after_completion(self.job(end_at=NOW + 5 * MINUTE), NOW) == NOW + 5 * MINUTE
        assert arm(self.job(end_at=NOON + 4 * MINUTE), NOON).next_run_at is None

    def test_jitter_delays_it(self) -> None:
        job = self.job(next_run_at=NOON)
        job = replace(job, timing=replace(job.timing, jitter=timedelta(hours=1)))
        assert NOON < plan(job, LOOKAHEAD, NOON).fires[0].available_at <= NOON + timedelta(hours=1)

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
            (NOW - 5 * MINUTE, NOW, NOW + 5 * MINUTE),
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
        assert given.detail == "not all of them are counted"
        assert given.through_at == NOON + timedelta(days=30)
