"""Draining: how many tasks a second start, of those that wait, once a worker is there.

The queues have their tasks before the worker starts. Ours is measured in three ways: with runs that wait in
the queue as theirs do, with as many fires that are yet to be planned, and with as many jobs that run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import limits, past
from bench.choice import Choice
from bench.figures import Subject
from bench.peers import field, harness
from bench.peers.stage import Stage

SECTION = "drain"
WAITING = "tasks that wait"
KINDS = {"runs": WAITING, "plan": "fires yet to be planned", "once": "jobs that run once"}


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for kind, case in KINDS.items():
        for ours in field.OUR_QUEUES:
            yield _subject(stage, ours.given(BENCH_KIND=kind), case, choice)
        if kind == "runs":
            for peer in field.chosen(field.QUEUES, choice.families):
                yield _subject(stage, peer, case, choice)
        yield from limits.of_rows(SECTION, case, stage, choice.count)
    for ours in field.OUR_QUEUES if choice.past else ():
        later = ours.given(BENCH_KIND="runs", BENCH_PAST=str(choice.past))
        yield _subject(stage, later, past.case_of(WAITING, choice.past), choice)


def _subject(stage: Stage, peer: field.Peer, case: str, choice: Choice) -> Subject:
    take = partial(harness.drain, stage, peer, choice.count, choice.workers)
    return Subject.of(SECTION, case, peer, take)
