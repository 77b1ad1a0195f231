"""Time limits that share a timer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from noonday.targets.limits import Limits
from tests.targets.hands import ended_by_cancel

SHORT = 0.02


@pytest.fixture
def limits() -> Iterator[Limits]:
    made = Limits()
    yield made
    made.close()


async def stuck(limits: Limits, seconds: float, began: asyncio.Event | None = None) -> str:
    try:
        with limits.within(seconds):
            if began is not None:
                began.set()
            await asyncio.Event().wait()
    except TimeoutError:
        return "timed out"
    raise AssertionError


async def test_everybody_who_waits_too_long_is_stopped(limits: Limits) -> None:
    told = await asyncio.gather(*(stuck(limits, seconds) for seconds in (SHORT, SHORT / 2, SHORT) * 5))
    assert set(told) == {"timed out"}


async def test_the_timer_of_one_that_ended_in_time_serves_those_who_came_later(limits: Limits) -> None:
    with limits.within(SHORT):
        pass
    began = asyncio.Event()
    later = asyncio.ensure_future(stuck(limits, SHORT, began))
    await began.wait()
    with limits.within(SHORT):
        pass
    assert await later == "timed out"
    assert await stuck(limits, SHORT) == "timed out"


async def test_one_that_ended_in_time_is_left_alone(limits: Limits) -> None:
    with limits.within(SHORT):
        await asyncio.sleep(0)
    assert await asyncio.ensure_future(stuck(limits, SHORT)) == "timed out"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_whoever_is_cancelled_by_somebody_else_is_cancelled(limits: Limits) -> None:
    began = asyncio.Event()
    running = asyncio.ensure_future(stuck(limits, 60, began))
    await began.wait()
    await ended_by_cancel(running)


async def test_a_cancellation_that_comes_with_the_end_of_the_time_stays_one(limits: Limits) -> None:
    async def both() -> None:
        with limits.within(60) as limit:
            limit.expire()
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(both())


async def test_an_outer_time_limit_is_not_taken_for_an_inner_one(limits: Limits) -> None:
    told: list[str] = []

    async def impatient() -> None:
        async with asyncio.timeout(SHORT):
            told.append(await stuck(limits, 60))

    with pytest.raises(TimeoutError):
        await impatient()
    assert told == []


async def test_an_exception_of_the_work_goes_through(limits: Limits) -> None:
    with pytest.raises(LookupError), limits.within(60):
        raise LookupError


async def test_what_is_remembered_is_bounded(limits: Limits) -> None:
    for seconds in range(1, 1000):
        with limits.within(seconds):
            pass
    assert len(limits) <= 64
    began = asyncio.Event()
    waiting = [asyncio.ensure_future(stuck(limits, 0.1 + number / 1000, began)) for number in range(100)]
    await began.wait()
    assert set(await asyncio.gather(*waiting)) == {"timed out"}
