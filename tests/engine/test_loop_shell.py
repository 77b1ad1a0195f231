"""The shell around the actors: errors are said once, back-off is bounded, cancelling is stopping."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
import structlog

from noonday.domain.errors import Unavailable
from noonday.engine.loop import Actor, Troubles, Wish, nap
from noonday.testing import ManualClock


class Scripted(Actor):
    name = "scripted"

    def __init__(self, script: Sequence[Wish | BaseException]) -> None:
        super().__init__(clock=ManualClock())
        self.script = list(script)
        self.passes = 0
        self.asleep = asyncio.Event()

    async def run_once(self) -> Wish:
        self.passes += 1
        if not self.script:
            self.asleep.set()
            return None
        step = self.script.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step


async def test_it_outlives_errors_and_says_each_kind_once() -> None:
    actor = Scripted([Unavailable("gone")] * 3 + [ValueError("odd")] + [Unavailable("gone")])
    with structlog.testing.capture_logs() as lines:
        motion = asyncio.create_task(actor.run())
        async with asyncio.timeout(20):
            await actor.asleep.wait()
        motion.cancel()
        with pytest.raises(asyncio.CancelledError):
            await motion
    said = [(line["action"], line.get("error")) for line in lines]
    assert said == [
        ("scripted.failed", "Unavailable: gone"),
        ("scripted.failed", "ValueError: odd"),
        ("scripted.back", None),
    ]
    assert lines[-1]["failures"] == 5


async def test_it_gives_way_to_a_cancel_even_from_within_a_pass() -> None:
    class Busy(Scripted):
        async def run_once(self) -> Wish:
            self.asleep.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    actor = Busy([])
    motion = asyncio.create_task(actor.run())
    await actor.asleep.wait()
    motion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await motion


def test_it_waits_longer_and_longer_but_never_more_than_a_few_seconds() -> None:
    troubles = Troubles("any", ManualClock())
    pauses = [troubles.after(Unavailable("gone")) for _ in range(50)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert max(pauses) == 3.0


def test_it_reminds_of_a_lasting_error_once_a_minute() -> None:
    clock = ManualClock()
    troubles = Troubles("any", clock)
    with structlog.testing.capture_logs() as lines:
        for _ in range(300):
            troubles.after(Unavailable("gone"))
            clock.advance(seconds=1)
    assert len(lines) == 5


async def test_it_runs_again_at_once_when_it_was_woken_during_a_pass() -> None:
    class Woken(Scripted):
        async def run_once(self) -> Wish:
            if self.passes == 0:
                self.wake.set()  # something happened after we had looked
            return await super().run_once()

    actor = Woken([None])
    motion = asyncio.create_task(actor.run())
    async with asyncio.timeout(20):
        await actor.asleep.wait()
    assert actor.passes == 2
    motion.cancel()


async def test_what_can_wait_begins_behind_what_cannot() -> None:
    class Later(Scripted):
        head_start = 0.05

    later, sooner = Later([]), Scripted([])
    motions = [asyncio.create_task(actor.run()) for actor in (later, sooner)]
    async with asyncio.timeout(20):
        await sooner.asleep.wait()
        assert later.passes == 0
        await later.asleep.wait()
    for motion in motions:
        motion.cancel()


async def test_it_naps_by_the_monotonic_clock_and_wakes_early_when_told() -> None:
    wake = asyncio.Event()
    await nap(0.001, wake)
    wake.set()
    async with asyncio.timeout(20):
        await nap(timedelta(hours=1).total_seconds(), wake)
    assert not wake.is_set()
