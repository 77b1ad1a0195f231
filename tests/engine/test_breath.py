"""The event loop lets threads have the interpreter while it works off a backlog."""

from __future__ import annotations

import pytest

from noonday.engine.breath import Breath


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("noonday.engine.breath.time.sleep", made.append)
    return made


def test_a_breath_is_taken_once_in_four_starts(pauses: list[float]) -> None:
    breathing = Breath(lambda: True)
    for _ in range(12):
        breathing.draw()
    assert len(pauses) == 3
    assert all(0 < pause < 0.001 for pause in pauses)


def test_where_nobody_knows_it_is_once_in_sixteen_starts(pauses: list[float]) -> None:
    breathing = Breath(None)
    for _ in range(48):
        breathing.draw()
    assert len(pauses) == 3


def test_no_breath_is_taken_while_no_thread_waits(pauses: list[float]) -> None:
    breathing = Breath(lambda: False)
    for _ in range(12):
        breathing.draw()
    assert not pauses
