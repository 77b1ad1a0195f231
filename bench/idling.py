"""Idling: what it costs to wait, with a thousand schedules of which none is due."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "idle"
STORED = 1000


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for peer in (*field.OUR_CLOCKS, *field.chosen(field.CLOCKS, choice.families)):
        take = partial(harness.idle, stage, peer, STORED, choice.idle_seconds)
        yield Subject.of(SECTION, f"{STORED:,} stored, none due", peer, take)
