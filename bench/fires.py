"""Punctuality: schedules that fall due evenly, so many a second, and how late each of them fires."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import past
from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "fires"
_COPIED = 100_000  # rows of history a second at the very least, when the database of a run is made


def case_of(rate: int, stored: int) -> str:
    return f"{rate:,} a second, {stored:,} stored"


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for stored in choice.stored:
        for rate in choice.rates:
            case = case_of(rate, max(stored, rate))
            for peer in (*field.OUR_CLOCKS, *field.chosen(field.CLOCKS, choice.families)):
                take = partial(harness.fires, stage, peer, _pace(choice, rate, stored))
                yield Subject.of(SECTION, case, peer, take)
    for rate in choice.rates if choice.past else ():
        stored = choice.stored[0]
        case = past.case_of(case_of(rate, max(stored, rate)), choice.past)
        for ours in field.OUR_CLOCKS:
            later = ours.given(BENCH_PAST=str(choice.past))
            pace = _pace(choice, rate, stored, choice.past / _COPIED)
            yield Subject.of(SECTION, case, later, partial(harness.fires, stage, later, pace))


def _pace(choice: Choice, rate: int, stored: int, more: float = 0.0) -> harness.Pace:
    crowd = max(0, stored - rate)
    lead = 15 + rate / 500 + crowd / 5000 + more
    return harness.Pace(rate=rate, seconds=choice.seconds, crowd=crowd, lead=lead)
