"""A job's line of time: where each run lies, what overlaps, what is late, and many runs drawn as few."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.timeline import PLANNED, Mark, Seen, line_of, mark_of, planned, usual_span
from tests.factories import NOON, an_id

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def seen(state: str = "completed", **more: Any) -> Seen:
    made = {"scheduled_for": NOON, "available_at": NOON} | more
    return Seen(id=ExecutionId(an_id()), state=ExecutionState(state), **made)


def ran(start: int, end: int, state: str = "completed") -> Mark:
    """From one minute to another."""
    at = NOON + start * MINUTE
    return Mark(start=at, end=NOON + end * MINUTE, state=state, due=at)


@pytest.mark.parametrize(
    ("run", "start", "end"),
    [
        (seen(started_at=NOON + SECOND, completed_at=NOON + MINUTE), SECOND, MINUTE),
        (seen("running", started_at=NOON + SECOND), SECOND, 5 * MINUTE),
        (seen("queued"), 5 * MINUTE, 5 * MINUTE),
        (
            seen("queued", scheduled_for=NOON + 9 * MINUTE, available_at=NOON + 9 * MINUTE),
            9 * MINUTE,
            9 * MINUTE,
        ),
        (seen("pending", available_at=None), 5 * MINUTE, 5 * MINUTE),
        (seen("pending", started_at=NOON, available_at=NOON + 7 * MINUTE), 7 * MINUTE, 7 * MINUTE),
        (seen("skipped", completed_at=NOON + MINUTE), 0 * MINUTE, 0 * MINUTE),
        (seen("skipped", through_at=NOON + 3 * MINUTE, instants=4), 0 * MINUTE, 3 * MINUTE),
        (seen("cancelled", completed_at=NOON + 2 * MINUTE), 0 * MINUTE, 0 * MINUTE),
    ],
)
def test_a_run_lies_where_it_happened(run: Seen, start: timedelta, end: timedelta) -> None:
    mark = mark_of(run, NOON + 5 * MINUTE)
    assert (mark.start - NOON, mark.end - NOON) == (start, end)


def test_a_late_start_is_told_and_a_skip_is_never_late() -> None:
    late = mark_of(seen(started_at=NOON + 2 * MINUTE, completed_at=NOON + 3 * MINUTE), NOON + 9 * MINUTE)
    waits = mark_of(seen("queued"), NOON + 9 * MINUTE)
    skipped = mark_of(seen("skipped", completed_at=NOON + 9 * MINUTE), NOON + 9 * MINUTE)
    prompt = mark_of(seen(started_at=NOON + SECOND, completed_at=NOON + MINUTE), NOON + 9 * MINUTE)
    assert [one.late for one in (late, waits, skipped, prompt)] == [True, True, False, False]
    assert late.lateness == 2 * MINUTE
    assert line_of([late, waits, skipped, prompt], MINUTE, 10).late == 2


def test_a_retry_is_not_late_whether_it_ran_or_waits() -> None:
    again = seen(started_at=NOON + 9 * MINUTE, completed_at=NOON + 9 * MINUTE, attempt=2)
    waits = seen("pending", started_at=NOON, available_at=NOON + 9 * MINUTE, attempt=1)
    first = seen("running", started_at=NOON + 9 * MINUTE, attempt=1)
    assert [mark_of(one, NOON + 9 * MINUTE).late for one in (again, waits, first)] == [False, False, True]


def test_runs_that_overlap_lie_in_rows_and_those_after_each_other_do_not() -> None:
    line = line_of([ran(0, 10), ran(2, 4), ran(3, 5), ran(4, 6), ran(10, 12)], MINUTE, 100)
    assert [one.row for one in line.marks] == [0, 1, 2, 1, 0]
    assert (line.rows, line.overlaps) == (3, 3)
    calm = line_of([ran(0, 1), ran(1, 2), *planned([NOON + MINUTE], 5 * MINUTE)], MINUTE, 100)
    assert (calm.rows, calm.overlaps) == (1, 0)


def test_more_overlaps_than_rows_share_the_last_row() -> None:
    line = line_of([ran(n, 60) for n in range(9)], MINUTE, 100)
    assert (line.rows, line.overlaps, len(line.marks)) == (3, 8, 9)


def test_many_runs_become_few_marks_that_lose_no_run_and_hide_no_failure() -> None:
    past = [ran(n, n, "failed" if n == 7 else "completed") for n in range(100)]
    coming = planned([NOON + n * MINUTE for n in range(95, 200)], timedelta())
    line = line_of([*past, *coming], 10 * MINUTE, 50)
    assert len(line.marks) <= 22
    assert sum(one.count for one in line.marks) == 205
    assert line.counts == {"completed": 99, "failed": 1, PLANNED: 105}
    assert line.marks[0].state == "failed"
    assert {one.state for one in line.marks} == {"failed", "completed", PLANNED}
    assert all(one.id is None for one in line.marks if one.count > 1)


def test_a_planned_run_lasts_as_long_as_completed_ones_did() -> None:
    took = usual_span([ran(0, 2), ran(5, 9), ran(10, 50, "failed")])
    assert took == 3 * MINUTE
    assert planned([NOON], took)[0].end == NOON + 3 * MINUTE
    assert usual_span([ran(0, 9, "failed")]) == timedelta()
