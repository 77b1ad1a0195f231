"""Only the time in which this process was awake is counted against others."""

from __future__ import annotations

import asyncio

import pytest

from noonday.patience import Patience


class Skipping:
    """The loop's clock, which jumps when told to, as after a pause of the whole process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._ahead, real = 0.0, loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead)

    async def skip(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_pause_of_our_own_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Skipping(monkeypatch)
    async with Patience(60):
        for _ in range(100):
            await clock.skip(3600)


async def test_it_ends_when_the_loop_ran_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Skipping(monkeypatch)
    steps = 0

    async def ticking() -> None:
        nonlocal steps
        while steps < 1000:
            await clock.skip(0.25)
            steps += 1

    with pytest.raises(TimeoutError):
        async with Patience(60):
            await ticking()
    assert 200 < steps <= 240


async def test_what_ended_in_time_is_not_disturbed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Skipping(monkeypatch)
    async with Patience(0.1):
        pass
    await clock.skip(3600)


@pytest.mark.parametrize("error", [ValueError, TimeoutError, asyncio.CancelledError])
async def test_errors_of_the_work_are_its_own(error: type[BaseException]) -> None:
    with pytest.raises(error, match="its own"):
        async with Patience(60):
            raise error("its own")
