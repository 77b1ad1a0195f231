"""Starting: from the start of the process to the first fire, with few and with very many schedules stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "start"
_MOST_OF_OTHERS = 100_000  # to store more takes them minutes


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for stored in choice.started_with:
        peers = field.chosen(field.CLOCKS, choice.families) if stored <= _MOST_OF_OTHERS else ()
        for peer in (*field.OUR_CLOCKS, *peers):
            take = partial(harness.first_fire, stage, peer, stored)
            yield Subject.of(SECTION, f"{stored:,} stored", peer, take)
