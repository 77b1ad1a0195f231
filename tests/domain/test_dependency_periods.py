"""Dependencies: readiness by period, and cycles against a naive search."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.dependency import Broken, ParentFacts, Readiness, Ready, Waiting, find_cycle, readiness
from noonday.domain.job import JobId
from tests.factories import an_id, at

YESTERDAY = at("2027-01-01T02:00")  # the child's previous slot
BEFORE = at("2027-01-01T01:00")  # the parent's slot of the period before
TODAY = at("2027-01-02T01:00")  # the parent's slot of this period
LONG_AGO = at("2026-01-01T00:00")


def a_parent(**changes: Any) -> ParentFacts:
    return ParentFacts(**({"job_id": JobId(an_id()), "name": "extract"} | changes))


def judged(*parents: ParentFacts, last_run_at: datetime | None = YESTERDAY) -> Readiness:
    return readiness(parents, covers_from=YESTERDAY, last_run_at=last_run_at)


def succeeded(slot: datetime, completed_at: datetime | None = None, **changes: Any) -> ParentFacts:
    facts = {"last_success_for": slot, "last_success_at": completed_at or slot, "last_status": "completed"}
    return a_parent(**(facts | changes))


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        pytest.param(a_parent(), Waiting(("extract",)), id="it never ran"),
        pytest.param(succeeded(TODAY), Ready(), id="it succeeded for this period"),
        pytest.param(succeeded(BEFORE), Waiting(("extract",)), id="it succeeded for an earlier period"),
        pytest.param(succeeded(YESTERDAY), Waiting(("extract",)), id="its slot is the child's previous one"),
        pytest.param(succeeded(BEFORE, TODAY), Ready(), id="an earlier period, completed since the last run"),
        pytest.param(
            a_parent(last_status="failed", last_status_for=TODAY), Broken("extract"), id="it failed"
        ),
        pytest.param(a_parent(last_status="cancelled"), Broken("extract"), id="it was cancelled"),
        pytest.param(
            a_parent(last_status="failed", last_status_for=TODAY, open=True),
            Waiting(("extract",)),
            id="it failed and is under way again",
        ),
        pytest.param(
            a_parent(last_status="failed", last_status_for=BEFORE),
            Waiting(("extract",)),
            id="it failed for an earlier period, this one is not planned yet",
        ),
        pytest.param(
            succeeded(TODAY, last_status="failed", last_status_for=TODAY), Ready(), id="a later run failed"
        ),
    ],
)
def test_a_parent_is_judged_by_period(parent: ParentFacts, expected: Readiness) -> None:
    assert judged(parent) == expected


def test_a_success_for_this_period_counts_even_if_the_child_was_forced_since() -> None:
    assert judged(succeeded(TODAY), last_run_at=TODAY) == Ready()


def test_a_failure_in_the_childs_previous_slot_belongs_to_the_period_before() -> None:
    assert judged(a_parent(last_status="failed", last_status_for=YESTERDAY)) == Waiting(("extract",))


def test_without_a_previous_slot_only_the_last_run_counts() -> None:
    used, unused = succeeded(LONG_AGO), succeeded(LONG_AGO, TODAY)
    assert readiness([used], covers_from=None, last_run_at=YESTERDAY) == Waiting(("extract",))
    assert readiness([unused], covers_from=None, last_run_at=YESTERDAY) == Ready()
    failed = a_parent(last_status="failed", last_status_for=LONG_AGO)
    assert readiness([failed], covers_from=None, last_run_at=YESTERDAY) == Broken("extract")


def test_a_child_that_never_ran_takes_any_success() -> None:
    assert judged(succeeded(LONG_AGO), last_run_at=None) == Ready()


def test_every_parent_must_have_succeeded_and_the_missing_ones_are_named() -> None:
    parents = [succeeded(TODAY, name="a"), a_parent(name="b"), a_parent(name="c")]
    assert judged(*parents) == Waiting(("b", "c"))


def test_a_broken_parent_outweighs_a_waiting_one() -> None:
    assert judged(a_parent(name="b"), a_parent(name="c", last_status="failed")) == Broken("c")


def test_no_parents_is_ready() -> None:
    assert judged() == Ready()


def ids(*names: str) -> list[JobId]:
    return [JobId(name) for name in names]


def graph(text: str) -> dict[JobId, tuple[JobId, ...]]:
    """`"a:bc b:a"`: a has edges to b and c, b to a."""
    return {JobId(part[0]): tuple(ids(*part[2:])) for part in text.split()}


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ("", None),
        ("a:a", ids("a", "a")),
        ("a:b b:a", ids("a", "b", "a")),
        ("a:bc b:c c:d", None),
        ("a:b b:c c:da", ids("a", "b", "c", "a")),
        ("b:c c:b a:b", None),
    ],
)
def test_cycles_by_example(edges: str, expected: list[JobId] | None) -> None:
    assert find_cycle(graph(edges), JobId("a")) == expected


def naive_cycle_lengths(edges: dict[JobId, tuple[JobId, ...]], start: JobId) -> set[int]:
    """Lengths of all walks of up to n steps from start back to it."""
    lengths, here = set(), {start}
    for step in range(1, len(edges) + 2):
        here = {there for node in here for there in edges.get(node, ())}
        if start in here:
            lengths.add(step)
    return lengths


nodes = st.sampled_from(ids(*"abcdef"))


@given(edges=st.dictionaries(nodes, st.lists(nodes, max_size=4).map(tuple)), start=nodes)
def test_it_finds_a_shortest_cycle_whenever_there_is_one(
    edges: dict[JobId, tuple[JobId, ...]], start: JobId
) -> None:
    lengths = naive_cycle_lengths(edges, start)
    found = find_cycle(edges, start)
    if found is None:
        assert not lengths
        return
    assert found[0] == found[-1] == start
    assert all(there in edges[here] for here, there in pairwise(found))
    assert len(found) - 1 == min(lengths)


def test_a_long_chain_needs_no_recursion() -> None:
    chain = {JobId(str(n)): (JobId(str(n + 1)),) for n in range(50_000)}
    assert find_cycle(chain, JobId("0")) is None
