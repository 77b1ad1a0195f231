"""The way of one run as a picture: its steps with the gaps that matter, and its attempts as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noonday.domain.execution import Attempt, Cause, Execution, ExecutionState, WaitReason
from noonday.web.words import STATES, span

__all__ = ["Bar", "Step", "bars", "compared", "steps"]

WIDTH: Final = 1000  # of the picture, in its own units
_THIN: Final = 4
_MATTERS: Final = timedelta(seconds=1)  # a shorter wait says nothing
_FAR: Final = 1.5  # times as long as usual: worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`gap` says what lies between it and the step before; `state` is what the run came to there, if any."""

    word: str
    at: datetime | None
    done: bool = True
    gap: str = ""
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
    """Planned, queued, claimed, running, end; of the newest attempt where there were several."""
    made = _begin(execution, now)
    if execution.state.open or execution.claimed_at is not None:
        made += _tried(execution, made[-1].at)
    made.append(_end(execution, now))
    return made


def _begin(execution: Execution, now: datetime) -> list[Step]:
    """What is due waits in the queue from then on; a time that was missed is planned after it was due.

    What people, triggers or other jobs cause is planned and queued at once.
    """
    planned, due = execution.created_at, execution.scheduled_for
    if due > planned:
        queued = Step(word="queued" if due <= now else "due", at=due, done=due <= now)
        return [Step(word="planned", at=planned), queued]
    if due < planned and execution.cause is Cause.SCHEDULE:
        return [
            Step(word="due", at=due),
            Step(word="planned", at=planned, gap=_later(due, planned, "{} later")),
        ]
    return [Step(word="queued", at=planned)]


def _tried(execution: Execution, ready_at: datetime | None) -> list[Step]:
    claimed_at, started_at = execution.claimed_at, execution.started_at
    if claimed_at is not None and ready_at is not None:
        claimed_at = max(claimed_at, ready_at)  # claimed ahead, it waited for its moment
    again = execution.attempt > 1
    running = execution.state is ExecutionState.RUNNING
    return [
        Step(
            word="claimed",
            at=claimed_at,
            done=claimed_at is not None,
            gap=_later(ready_at, claimed_at, "{} of earlier attempts" if again else "waited {}"),
            hint=f"attempt {execution.attempt}" if again else "",
        ),
        Step(
            word="running",
            at=started_at,
            done=started_at is not None,
            gap=_later(claimed_at, started_at, "began {} later"),
            state="running" if running else "",
            hint="works elsewhere and reports" if running and execution.remote else "",
        ),
    ]


def _end(execution: Execution, now: datetime) -> Step:
    if not execution.state.open:
        word, at = execution.state.value, execution.completed_at or execution.created_at
        took = "" if execution.started_at is None else f"took {span(_between(execution.started_at, at))}"
        return Step(word=word, at=at, state=word, gap=took)
    if execution.wait_reason is WaitReason.RETRY:
        return Step(word="next try", at=execution.available_at, done=False)
    running = execution.state is ExecutionState.RUNNING and execution.started_at is not None
    so_far = f"{span(_between(execution.started_at or now, now))} so far" if running else ""
    return Step(word="end", at=None, done=False, gap=so_far)


def _later(before: datetime | None, after: datetime | None, words: str) -> str:
    if before is None or after is None or after - before < _MATTERS:
        return ""
    return words.format(span(after - before))


def _between(before: datetime, after: datetime) -> timedelta:
    return max(timedelta(), after - before)


def compared(execution: Execution, usual: timedelta | None, now: datetime) -> str:
    """How long it took beside how long such a run usually takes; nothing where that is not known."""
    if usual is None or execution.started_at is None:
        return ""
    going = execution.state is ExecutionState.RUNNING
    took = _between(execution.started_at, now if going else execution.completed_at or now)
    times = took / usual if usual else 1.0
    if times >= _FAR:
        return f"{times:.1f} times as long as usual, which is {span(usual)}"
    return f"usually {span(usual)}"


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
