"""A burst: many runs due at one moment, and how long after it the last of them has started."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "burst"


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    count = choice.burst
    for stored in choice.stored:
        case = f"{count:,} at one moment, {stored:,} stored"
        more = {"BENCH_CROWD": str(stored)}
        for peer in field.OUR_QUEUES:
            take = partial(harness.burst, stage, peer, count, more)
            yield Subject.of(SECTION, case, peer, take)
        if stored != choice.stored[0]:
            continue
        for peer in field.chosen(field.QUEUES, choice.families):
            if peer.takes_moments:
                take = partial(harness.burst, stage, peer, count, {})
                yield Subject.of(SECTION, case, peer, take)
        for peer in field.chosen(field.CLOCKS, choice.families):
            again = partial(harness.burst_of_schedules, stage, peer, count, 15 + count / 500)
            yield Subject.of(SECTION, case, peer, again)
