"""Punctuality: schedules that fall due evenly, so many a second, and how late each of them fires."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "fires"


def case_of(rate: int, stored: int) -> str:
    return f"{rate:,} a second, {stored:,} stored"


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for stored in choice.stored:
        for rate in choice.rates:
            crowd = max(0, stored - rate)
            pace = harness.Pace(
                rate=rate, seconds=choice.seconds, crowd=crowd, lead=15 + rate / 500 + crowd / 5000
            )
            peers = field.chosen(field.CLOCKS, choice.families)
            for peer in (*field.OUR_CLOCKS, *peers):
                yield Subject(
                    section=SECTION,
                    case=case_of(rate, max(stored, rate)),
                    name=peer.name,
                    role="ours" if peer.ours else "peer",
                    keeps=peer.keeps,
                    take=partial(harness.fires, stage, peer, pace),
                )
