"""Whose turn it is."""

from __future__ import annotations

import pytest

from noonday.domain.job import Lane
from noonday.queue.turns import Turns


def all_full(turns: Turns, limit: int, takes: int) -> dict[Lane, int]:
    """What each lane gets while all of them are full."""
    got = dict.fromkeys(Lane, 0)
    for _ in range(takes):
        share, order = turns.owed(limit)
        got[order[0]] += share
        got[Lane.HIGH] += limit - share
        turns.served(limit)
    return got


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 10, 64, 100])
def test_it_gives_an_eighth_to_the_lower_lanes_whatever_the_limit(limit: int) -> None:
    got = all_full(Turns(), limit, takes=8000 // limit)
    total = sum(got.values())
    assert got[Lane.LOW] + got[Lane.NORMAL] == pytest.approx(total / 8, rel=0.02, abs=limit)
    assert min(got[Lane.LOW], got[Lane.NORMAL]) >= total / 8 / 3


def test_it_owes_nothing_at_the_start_and_nothing_to_an_idle_road() -> None:
    turns = Turns()
    for _ in range(100):
        assert turns.owed(10)[0] == 0
        turns.served(0)


def test_it_never_gives_more_than_the_limit() -> None:
    turns = Turns()
    turns.served(1000)
    assert [turns.owed(2)[0], turns.owed(1)[0]] == [2, 1]
