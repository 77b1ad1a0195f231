"""The clock that all instances share: the database's time, carried on by the monotonic clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from noonday import clock as clock_module
from noonday.clock import SyncedClock, SystemClock, shared_clock

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class Hand(SyncedClock):
    """Its monotonic clock is moved by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 1000.0

    def monotonic(self) -> float:
        return self.elapsed


@pytest.fixture
def hand() -> Hand:
    made = Hand()
    made.adjust(NOON, made.elapsed)
    return made


def seconds_after_noon(clock: SyncedClock) -> float:
    return (clock.now() - NOON).total_seconds()


def test_it_is_carried_on_by_the_monotonic_clock_and_not_by_the_wall(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wall in (timedelta(seconds=60), timedelta(seconds=-60), timedelta(days=365)):
        monkeypatch.setattr(clock_module, "wall_clock", lambda wall=wall: NOON + wall)
        hand.elapsed += 2.5
    assert seconds_after_noon(hand) == pytest.approx(7.5)
    assert hand.now().tzinfo is UTC


def test_it_goes_by_the_wall_until_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "wall_clock", lambda: NOON)
    clock = SyncedClock()
    assert not clock.synced
    assert clock.now() == NOON
    clock.adjust(NOON + timedelta(hours=1), clock.monotonic())
    assert clock.synced
    assert clock.now() >= NOON + timedelta(hours=1)


def test_it_says_how_far_it_was_behind(hand: Hand) -> None:
    assert hand.adjust(NOON + timedelta(seconds=5), hand.elapsed) == timedelta(seconds=5)
    hand.elapsed += 10
    assert hand.adjust(NOON + timedelta(seconds=14.5), hand.elapsed).total_seconds() == pytest.approx(-0.5)


def test_it_counts_a_measurement_from_the_moment_it_was_made(hand: Hand) -> None:
    hand.elapsed += 10
    hand.adjust(NOON + timedelta(seconds=4), 1004.0)  # six seconds ago
    assert seconds_after_noon(hand) == pytest.approx(10)


def test_a_clock_that_is_a_little_ahead_slows_down_and_never_goes_back(hand: Hand) -> None:
    hand.adjust(NOON - timedelta(seconds=0.4), hand.elapsed)
    seen = []
    for _ in range(12):
        seen.append(seconds_after_noon(hand))
        hand.elapsed += 0.1
    assert seen[0] == pytest.approx(0.0)
    assert all(later > earlier for earlier, later in pairwise(seen))
    assert seen[4] == pytest.approx(0.2), "half as fast"
    assert seen[11] == pytest.approx(0.7), "and right when the others have caught up"


def test_a_clock_that_is_a_little_behind_is_set_at_once(hand: Hand) -> None:
    hand.adjust(NOON + timedelta(seconds=0.4), hand.elapsed)
    assert seconds_after_noon(hand) == pytest.approx(0.4)


def test_a_measurement_that_it_may_agree_with_changes_nothing(hand: Hand) -> None:
    assert hand.adjust(NOON - timedelta(seconds=0.3), hand.elapsed, doubt=0.4) == timedelta()
    hand.elapsed += 1
    assert seconds_after_noon(hand) == pytest.approx(1)
    hand.adjust(NOON + timedelta(seconds=0.5), hand.elapsed, doubt=0.4)
    hand.elapsed += 2
    assert seconds_after_noon(hand) == pytest.approx(2.5), "it was ahead by more than that"
    hand.adjust(NOON + timedelta(seconds=3), hand.elapsed, doubt=0.4)
    assert seconds_after_noon(hand) == pytest.approx(3), "it was behind"


def test_a_correction_on_top_of_another_does_not_go_back_either(hand: Hand) -> None:
    hand.adjust(NOON - timedelta(seconds=0.8), hand.elapsed)
    hand.elapsed += 0.2
    before = seconds_after_noon(hand)
    hand.adjust(NOON - timedelta(seconds=0.6) - timedelta(seconds=0.1), hand.elapsed)
    assert seconds_after_noon(hand) == pytest.approx(before)
    hand.elapsed += 5
    assert seconds_after_noon(hand) == pytest.approx(-0.7 + 5)


@pytest.mark.parametrize("step", [-120.0, -1.5, 1.5, 60.0])
def test_a_big_difference_is_corrected_at_once(hand: Hand, step: float) -> None:
    """All instances must agree: one that crept for minutes would take leases of others for dead."""
    hand.adjust(NOON + timedelta(seconds=step), hand.elapsed)
    assert seconds_after_noon(hand) == pytest.approx(step)


async def test_sleepers_follow_a_big_correction() -> None:
    clock = SyncedClock()
    clock.adjust(NOON, clock.monotonic())
    sleeping = asyncio.create_task(clock.sleep_until(NOON + timedelta(hours=1), asyncio.Event()))
    await asyncio.sleep(0)
    clock.adjust(NOON + timedelta(hours=1), clock.monotonic())
    async with asyncio.timeout(5):
        await sleeping


async def test_sleepers_wake_at_their_moment_and_when_they_are_woken() -> None:
    clock = SyncedClock()
    clock.adjust(NOON, clock.monotonic())
    async with asyncio.timeout(5):
        await clock.sleep_until(NOON + timedelta(seconds=0.05), asyncio.Event())
    assert NOON + timedelta(seconds=0.05) <= clock.now() < NOON + timedelta(seconds=5)
    wake = asyncio.Event()
    sleeping = asyncio.create_task(clock.sleep_until(None, wake))
    await asyncio.sleep(0)
    wake.set()
    async with asyncio.timeout(5):
        await sleeping
    assert not wake.is_set()


def test_only_machines_that_share_a_database_need_to_agree() -> None:
    assert type(shared_clock("sqlite:///x.db")) is SystemClock
    assert isinstance(shared_clock("postgresql://host/x"), SyncedClock)
    assert isinstance(shared_clock("postgres://host/x"), SyncedClock)
