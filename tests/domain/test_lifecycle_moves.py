"""The job table over all 49 pairs, the table of executions, and the state a job comes to rest in."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from noonday.domain.errors import MoveRefused
from noonday.domain.execution import OPEN, ExecutionState
from noonday.domain.job import JobId, JobState, Trigger
from noonday.domain.lifecycle import EXECUTION_MOVES, MOVES, can, move, resting_state
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, Manual, Once, Schedule
from tests.factories import NOON, a_job, a_timing

ALLOWED = {
    "pending": "scheduled running cancelled",
    "scheduled": "running pending paused cancelled",
    "paused": "scheduled pending cancelled",
    "running": "completed failed scheduled cancelled",
    "completed": "scheduled",
    "failed": "pending",
    "cancelled": "",
}
PAIRS = list(product(JobState, JobState))


def test_there_are_49_pairs() -> None:
    assert len(PAIRS) == 49
    assert set(MOVES) == set(JobState)


@pytest.mark.parametrize(("current", "wanted"), PAIRS)
def test_the_job_table(current: JobState, wanted: JobState) -> None:
    if wanted in ALLOWED[current].split():
        assert can(current, wanted)
        assert move(current, wanted) is wanted
    else:
        assert not can(current, wanted)
        with pytest.raises(MoveRefused, match=f"{current} cannot become {wanted}; try this") as refused:
            move(current, wanted, "try this")
        assert (refused.value.current, refused.value.wanted) == (current, wanted)


def test_a_cancelled_job_goes_nowhere_and_every_other_state_can_be_left() -> None:
    assert [state for state in JobState if not MOVES[state]] == [JobState.CANCELLED]


def test_the_execution_table() -> None:
    assert set(EXECUTION_MOVES) == set(ExecutionState)
    for state, following in EXECUTION_MOVES.items():
        assert state not in following
        if state not in OPEN:
            assert not following or (state, following) == (
                ExecutionState.SKIPPED,
                frozenset({ExecutionState.QUEUED}),
            )
    for state in ExecutionState:
        reachable, ahead = {state}, [state]
        while ahead:
            for there in EXECUTION_MOVES[ahead.pop()] - reachable:
                reachable.add(there)
                ahead.append(there)
        if state in OPEN:
            assert reachable == set(ExecutionState), "an open execution can still end in every way"


SCHEDULES: dict[str, Schedule] = {
    "cron": Cron(expression="* * * * *"),
    "interval": Interval(count=1),
    "calendar": Frequency(frequency="daily"),
    "immediate": Immediate(),
    "once": Once(run_at=NOON),
    "event": Event(),
    "manual": Manual(),
}
BY_CAUSE = ("event", "manual")
RECURRING = ("cron", "interval", "calendar")

COMBINATIONS = list(
    product(
        JobState,
        (True, False),  # paused
        (True, False),  # enabled
        (NOON, None),  # next_run_at
        SCHEDULES,
        (0, 1, 2),  # running
        (True, False),  # a forced run waits
        (True, False),  # anything waits
        ("completed", "failed", "cancelled", "skipped", None),
    )
)


def expected_rest(combination: tuple[Any, ...]) -> str:
    state, paused, enabled, next_run_at, kind, running, forced, waiting, last = combination
    rules = [
        (state == "cancelled", "cancelled"),
        (running > 0, "running"),
        (forced, "pending"),
        (paused, "paused"),
        (waiting, "scheduled"),
        (next_run_at is not None, "scheduled"),
        (kind in BY_CAUSE, "scheduled"),
        (kind in RECURRING and not enabled, "scheduled"),
        (last == "failed", "failed"),
        (True, "completed"),
    ]
    return next(result for holds, result in rules if holds)


def rest(combination: tuple[Any, ...]) -> JobState:
    state, paused, enabled, next_run_at, kind, running, forced, waiting, last = combination
    job = a_job(
        timing=a_timing(SCHEDULES[kind]), state=state, paused=paused, enabled=enabled, next_run_at=next_run_at
    )
    return resting_state(
        job=job,
        open_running=running,
        open_waiting_manual=forced,
        open_waiting=waiting,
        last_status=last,
    )


def test_every_combination_comes_to_rest_as_expected() -> None:
    wrong = [one for one in COMBINATIONS if rest(one) != expected_rest(one)]
    assert len(COMBINATIONS) == 7 * 2 * 2 * 2 * 7 * 3 * 2 * 2 * 5
    assert not wrong[:3]


@pytest.mark.parametrize(
    "changes",
    [
        {"trigger": Trigger(webhook="/build")},
        {"trigger": Trigger(channel="news")},
        {"on_success_of": (JobId("parent"),)},
    ],
)
def test_a_job_with_another_cause_is_not_over_when_its_schedule_is(changes: dict[str, Any]) -> None:
    job = a_job(schedule=Immediate(), **changes)
    state = resting_state(job=job, open_running=0, open_waiting_manual=False, last_status="completed")
    assert state is JobState.SCHEDULED


def one_or_two_moves(current: JobState, wanted: JobState) -> bool:
    return can(current, wanted) or any(can(current, via) and can(via, wanted) for via in MOVES[current])


# What the engine and people do to a job: from which state, with which facts afterwards.
STEPS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "claimed": (("pending", "scheduled", "paused", "completed", "failed", "running"), {"open_running": 1}),
    "ended, more to come": (("running", "scheduled", "pending"), {"next_run_at": NOON}),
    "ended, last one completed": (("running", "scheduled", "pending"), {"last_status": "completed"}),
    "ended, last one failed": (("running", "scheduled", "pending"), {"last_status": "failed"}),
    "ended while paused": (("running", "pending", "paused"), {"paused": True, "next_run_at": NOON}),
    "ended, a retry waits": (("running",), {"open_waiting": True}),
    "ended, a forced run waits": (("running",), {"open_waiting_manual": True}),
    "forced": (("scheduled", "paused", "completed", "failed", "running"), {"open_waiting_manual": True}),
    "paused": (("pending", "scheduled", "completed"), {"paused": True}),
    "resumed or edited": (("paused", "completed", "failed", "pending"), {"next_run_at": NOON}),
    "planned ahead": (("scheduled",), {"open_waiting": True}),
    "all skipped, nothing more": (("scheduled",), {"last_status": "completed"}),
}


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_the_engine_is_one_allowed_move_or_two(step: str) -> None:
    before, facts = STEPS[step]
    facts = {"paused": False, "next_run_at": None} | facts
    given = {"open_running": 0, "open_waiting_manual": False, "last_status": None} | {
        name: value for name, value in facts.items() if name not in ("paused", "next_run_at")
    }
    for state in before:
        job = a_job(
            schedule=Immediate(),
            state=JobState(state),
            paused=facts["paused"],
            next_run_at=facts["next_run_at"],
        )
        after = resting_state(job=job, **given)
        assert after == state or one_or_two_moves(JobState(state), after), f"{state} to {after}"
