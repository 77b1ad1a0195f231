"""The way of one run as a picture: its steps with the gaps between, and its attempts as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from noonday.domain.execution import Attempt, Execution, ExecutionState, WaitReason
from noonday.web.words import STATES

__all__ = ["Bar", "Step", "bars", "steps"]

WIDTH: Final = 1000  # of the picture, in its own units
_THIN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`after` is the gap to the step before; `state` is what the run came to there, if it is that."""

    word: str
    at: datetime | None
    done: bool = True
    after: timedelta | None = None
    state: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One attempt: where it begins and how wide it is, of WIDTH."""

    number: int
    outcome: str
    tone: str
    x: int
    width: int
    started_at: datetime
    took: timedelta
    instance: str | None
    error: str | None


def steps(execution: Execution, now: datetime) -> list[Step]:
    """Planned, due, claimed, running, end; of the newest attempt where there were several."""
    made = [
        Step(word="planned", at=execution.created_at),
        Step(word="due", at=execution.scheduled_for, done=execution.scheduled_for <= now),
    ]
    made.sort(key=lambda step: step.at or now)  # a missed time was due before it was planned
    if execution.state.open or execution.claimed_at is not None:
        newest = f"attempt {execution.attempt}" if execution.attempt > 1 else ""
        running = "running" if execution.state is ExecutionState.RUNNING else ""
        afar = "works elsewhere and reports" if running and execution.remote else ""
        made += [
            _passed("claimed", execution.claimed_at, hint=newest),
            _passed("running", execution.started_at, state=running, hint=afar),
        ]
    made.append(_end(execution))
    return _with_gaps(made)


def _passed(word: str, at: datetime | None, state: str = "", hint: str = "") -> Step:
    return Step(word=word, at=at, done=at is not None, state=state, hint=hint)


def _end(execution: Execution) -> Step:
    if not execution.state.open:
        word = execution.state.value
        return Step(word=word, at=execution.completed_at or execution.created_at, state=word)
    if execution.wait_reason is WaitReason.RETRY:
        return Step(word="next try", at=execution.available_at, done=False)
    return Step(word="end", at=None, done=False)


def _with_gaps(made: Sequence[Step]) -> list[Step]:
    found: list[Step] = []
    before: datetime | None = None
    for step in made:
        gap = None if step.at is None or before is None else max(timedelta(), step.at - before)
        found.append(replace(step, after=gap))
        before = step.at or before
    return found


def bars(execution: Execution, attempts: Sequence[Attempt], now: datetime) -> list[Bar]:
    """On one line of time, from the first start to the last end or to now."""
    tries = [one for one in attempts if one.started_at is not None]
    if execution.state is ExecutionState.RUNNING and execution.started_at is not None:
        running = Attempt(
            execution_id=execution.id,
            number=execution.attempt,
            outcome="running",
            started_at=execution.started_at,
            completed_at=max(now, execution.started_at),
            instance_id=execution.instance_id,
        )
        tries.append(running)
    if not tries:
        return []
    first = min(one.started_at for one in tries if one.started_at)
    whole = (max(one.completed_at for one in tries) - first).total_seconds() or 1.0
    return [_bar(one, one.started_at, first, whole) for one in tries if one.started_at]


def _bar(one: Attempt, started_at: datetime, first: datetime, whole: float) -> Bar:
    x, end = (round((at - first).total_seconds() / whole * WIDTH) for at in (started_at, one.completed_at))
    return Bar(
        number=one.number,
        outcome=one.outcome,
        tone=STATES.get(one.outcome, ("off", ""))[0],
        x=min(x, WIDTH - _THIN),
        width=max(_THIN, end - x),
        started_at=started_at,
        took=one.completed_at - started_at,
        instance=one.instance_id,
        error=one.error,
    )
