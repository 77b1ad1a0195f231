"""Rows come out in their order and none is lost, whatever the order in which they were committed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.tail import Tail


def tail(head: int = 0) -> Tail[int]:
    return Tail(head, int)


def test_it_gives_what_follows_at_once() -> None:
    made = tail(3)
    assert made.take([4, 5, 6], 0.0) == ([4, 5, 6], [])
    assert (made.head, made.waiting) == (6, False)


def test_it_waits_for_what_is_missing() -> None:
    made = tail()
    assert made.take([1, 3, 4], 0.0) == ([1], [])
    assert made.waiting
    assert made.take([3, 4], 0.9) == ([], [])
    assert made.take([2, 3, 4], 0.95) == ([2, 3, 4], [])
    assert not made.waiting


def test_it_gives_up_after_its_patience() -> None:
    made = tail()
    assert made.take([2, 3], 5.0) == ([], [])
    assert made.take([2, 3, 4], 6.0) == ([2, 3, 4], [])
    assert made.missing == {1}


def test_two_gaps_cost_one_patience() -> None:
    made = tail()
    made.take([2, 4], 0.0)
    assert made.take([2, 4], 1.0) == ([2, 4], [])


def test_a_gap_that_is_filled_in_part_is_as_old_as_it_was() -> None:
    made = tail()
    made.take([3], 0.0)
    assert made.take([2, 3], 0.5) == ([], [])
    assert made.take([2, 3], 1.0) == ([2, 3], [])
    assert made.missing == {1}


def test_what_comes_after_all_is_late_once() -> None:
    made = tail()
    made.take([2], 0.0)
    made.take([2], 1.0)
    assert made.take([1, 3], 2.0) == ([3], [1])
    assert made.missing == frozenset()
    assert made.take([1], 3.0) == ([], [])


def test_what_is_missing_is_forgotten_in_the_end() -> None:
    made = tail()
    made.take([2], 0.0)
    made.take([2], 1.0)
    made.take([], 60.0)
    assert made.missing == {1}
    made.take([], 61.0)
    assert made.missing == frozenset()


def test_a_huge_gap_is_not_remembered_whole() -> None:
    made = tail()
    made.take([1_000_000], 0.0)
    assert made.take([1_000_000], 1.0) == ([1_000_000], [])
    assert len(made.missing) == 200
    assert max(made.missing) == 999_999


def test_it_can_be_told_to_go_on_further_up() -> None:
    made = tail()
    made.take([5], 0.0)
    made.skip_to(4)
    assert made.take([5, 6], 0.1) == ([5, 6], [])
    made.skip_to(2)
    assert made.head == 6


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.floats(0, 3)),
        unique_by=lambda pair: pair[0],
        min_size=1,
        max_size=30,
    )
)
def test_every_row_comes_once_and_the_ready_ones_in_order(commits: list[tuple[int, float]]) -> None:
    """`commits`: a number and when it became visible. A look every tenth of a second sees what is there."""
    made = tail()
    ready: list[int] = []
    late: list[int] = []
    for step in range(60):
        now = step / 10
        there = sorted(number for number, at in commits if at <= now)
        seen = [number for number in there if number > made.head or number in made.missing]
        more, behind = made.take(seen, now)
        ready += more
        late += behind
    assert ready == sorted(ready)
    assert sorted(ready + late) == sorted(number for number, _ in commits)
    last = dict(commits)
    for number in late:  # only what came more than the patience after a later one
        assert any(last[other] <= last[number] - 0.9 for other in ready if other > number)
