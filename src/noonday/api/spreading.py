"""How the load is spread over the day, and what would be moved, on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.bodies import Body
from noonday.api.fields import Label
from noonday.api.schedules import instant_text
from noonday.control.rebalance import Distribution, Done, Refused, Suggestion, Wish
from noonday.domain.explain import explain
from noonday.domain.load import Load
from noonday.domain.rebalance import Move

__all__ = [
    "DistributionShape",
    "RebalanceBody",
    "RebalanceShape",
    "WishBody",
    "distribution_json",
    "done_json",
    "suggestion_json",
]

Json = dict[str, Any]


class WishBody(Body):
    """What may be moved, and how; without a word, every job that has room."""

    jobs: list[Label] = Field(default_factory=list, max_length=1000, description="names or ids; all if empty")
    slot_minutes: Literal[5, 10, 15, 20, 30, 60] = 15
    fixed_minutes: Annotated[bool, Field(description="also change the single minute of a cron text")] = False
    max_moves: Annotated[int, Field(ge=1, le=1000)] = 100

    def wish(self) -> Wish:
        return Wish(
            jobs=tuple(self.jobs),
            slot_minutes=self.slot_minutes,
            fixed_minutes=self.fixed_minutes,
            most=self.max_moves,
        )


class RebalanceBody(WishBody):
    dry_run: Annotated[bool, Field(description="only say what would be moved")] = False


class SlotShape(Shape):
    at: datetime
    starts: float


class DistributionShape(Shape):
    """Starts in each slot of the coming day. The score is 1 - deviation / mean, at least 0."""

    start: datetime = Field(alias="from")
    end: datetime = Field(alias="to")
    slot_minutes: int
    jobs: int
    total: float
    mean: float
    deviation: float
    score: float
    peak: SlotShape
    slots: list[SlotShape]
    partial: bool = Field(description="there are more jobs than are looked at")


class ShiftShape(Shape):
    job_id: str
    job_name: str
    shift_minutes: int
    schedule_before: str
    schedule_after: str
    next_run_before: datetime
    next_run_after: datetime


class RefusedShape(Shape):
    job_id: str
    job_name: str
    error: str


class RebalanceShape(Shape):
    """What was moved, or would be; jobs that stay are counted by the reason."""

    dry_run: bool
    score_before: float
    score_after: float
    peak_before: SlotShape
    peak_after: SlotShape
    moves: list[ShiftShape]
    refused: list[RefusedShape] = Field(description="changed by somebody else meanwhile")
    held: dict[str, int]
    slots_before: list[SlotShape]
    slots_after: list[SlotShape]
    partial: bool


def distribution_json(found: Distribution) -> Json:
    load = found.load
    return {
        "from": instant_text(load.start),
        "to": instant_text(load.start + load.slot * len(load.starts)),
        "slot_minutes": load.slot // timedelta(minutes=1),
        "jobs": found.jobs,
        "total": round(load.total, 2),
        "mean": round(load.mean, 4),
        "deviation": round(load.deviation, 4),
        "score": _score(load),
        "peak": _peak(load),
        "slots": _slots(load),
        "partial": found.partial,
    }


def suggestion_json(found: Suggestion) -> Json:
    proposal = found.proposal
    return _rebalance(found, proposal.after, proposal.moves, (), dry_run=True)


def done_json(done: Done) -> Json:
    return _rebalance(done.suggestion, done.after, done.moved, done.refused, dry_run=False)


def _rebalance(
    found: Suggestion, after: Load, moves: Sequence[Move], refused: Sequence[Refused], *, dry_run: bool
) -> Json:
    before = found.proposal.before
    return {
        "dry_run": dry_run,
        "score_before": _score(before),
        "score_after": _score(after),
        "peak_before": _peak(before),
        "peak_after": _peak(after),
        "moves": [_move(move) for move in moves],
        "refused": [
            {"job_id": one.move.job.id, "job_name": one.move.job.name, "error": one.why} for one in refused
        ],
        "held": {why.value: count for why, count in sorted(found.proposal.held.items())},
        "slots_before": _slots(before),
        "slots_after": _slots(after),
        "partial": found.partial,
    }


def _move(move: Move) -> Json:
    job = move.job
    return {
        "job_id": job.id,
        "job_name": job.name,
        "shift_minutes": move.shift // timedelta(minutes=1),
        "schedule_before": explain(job.timing, job.id),
        "schedule_after": explain(move.timing, job.id),
        "next_run_before": instant_text(move.next_before),
        "next_run_after": instant_text(move.next_after),
    }


def _slots(load: Load) -> list[Json]:
    return [
        {"at": instant_text(load.start + place * load.slot), "starts": round(starts, 2)}
        for place, starts in enumerate(load.starts)
    ]


def _peak(load: Load) -> Json:
    return max(_slots(load), key=lambda slot: slot["starts"])


def _score(load: Load) -> float:
    return round(load.score, 4)
