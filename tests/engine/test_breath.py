"""The event loop lets threads have the interpreter while it works off a backlog."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from noonday.engine.breath import Breath, hasten
from noonday.engine.coming import Coming
from noonday.engine.engine import EngineConfig
from noonday.engine.held import Held
from noonday.ports import Claim
from noonday.testing import ManualClock
from tests.factories import NOON, a_job, an_execution


class Threads:
    def __init__(self, *, waiting: bool, brought: bool = False) -> None:
        self._waiting = waiting
        self.brought = brought

    def waiting(self) -> bool:
        return self._waiting


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("noonday.engine.breath.time.sleep", made.append)
    return made


def test_a_breath_is_taken_once_in_four_starts(pauses: list[float]) -> None:
    breathing = Breath(Threads(waiting=True))
    for _ in range(12):
        breathing.draw()
    assert len(pauses) == 3
    assert all(0 < pause < 0.001 for pause in pauses)


def test_no_breath_is_taken_while_no_thread_waits(pauses: list[float]) -> None:
    breathing = Breath(Threads(waiting=False))
    for _ in range(12):
        breathing.draw()
    assert not pauses


def test_the_loop_is_expected_while_a_thread_has_brought_something() -> None:
    threads = Threads(waiting=False)
    breathing = Breath(threads)
    assert not breathing.expected
    threads.brought = True
    assert breathing.expected


@pytest.fixture
def interval() -> Iterator[float]:
    usual = sys.getswitchinterval()
    yield usual
    sys.setswitchinterval(usual)


async def test_threads_give_way_sooner_while_runs_wait_for_their_moment(interval: float) -> None:
    clock = ManualClock(NOON)
    coming = Coming(clock, lambda due: None, hasten)
    execution = an_execution(available_at=NOON + timedelta(seconds=1))
    soon = Held(Claim(a_job(), execution), trusted_until=9.0, waiting_since=0.0)
    assert coming.add([soon]) == []
    assert sys.getswitchinterval() == pytest.approx(interval / 10)
    assert coming.clear() == [soon]
    assert sys.getswitchinterval() == pytest.approx(interval)


async def test_it_is_left_alone_in_a_process_of_somebody_else(interval: float) -> None:
    coming = Coming(ManualClock(NOON), lambda due: None)
    execution = an_execution(available_at=NOON + timedelta(seconds=1))
    coming.add([Held(Claim(a_job(), execution), trusted_until=9.0, waiting_since=0.0)])
    assert sys.getswitchinterval() == pytest.approx(interval)
    assert not EngineConfig(instance_id="embedded").own_process
    coming.clear()
