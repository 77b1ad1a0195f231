"""The event loop lets threads have the interpreter while it works off a backlog."""

from __future__ import annotations

import pytest

from noonday.engine.breath import Breath


def test_a_breath_is_taken_once_in_sixteen_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("noonday.engine.breath.time.sleep", pauses.append)
    breathing = Breath()
    for _ in range(48):
        breathing.draw()
    assert len(pauses) == 3
    assert all(0 < pause < 0.001 for pause in pauses)
