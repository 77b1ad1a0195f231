"""A coroutine in a context of its own: nobody sees what it set, and it can be awaited, stopped and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest

from noonday.targets.apart import Apart

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


def begun(work: Coroutine[Any, Any, Any], own: Context) -> Apart:
    return Apart(work, own, own.run(work.send, None))


async def test_it_sees_the_context_it_is_given_and_nobody_sees_what_it_sets() -> None:
    seen = []

    async def paint() -> str:
        seen.append(COLOUR.get())
        COLOUR.set("red")
        await asyncio.sleep(0)
        seen.append(COLOUR.get())
        return "done"

    COLOUR.set("blue")
    assert await begun(paint(), copy_context()) == "done"
    assert seen == ["blue", "red"]
    assert COLOUR.get() == "blue"


async def test_what_it_awaits_answers_and_raises_inside() -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    trouble: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask() -> tuple[str, str]:
        got = await answer
        try:
            await trouble
        except ValueError as exc:
            return got, str(exc)
        return got, "nothing"

    asking = asyncio.ensure_future(_await(ask(), copy_context()))
    await asyncio.sleep(0)
    answer.set_result("yes")
    await asyncio.sleep(0)
    trouble.set_exception(ValueError("no"))
    assert await asking == ("yes", "no")


async def test_cancelling_and_time_outs_reach_it() -> None:
    ended = []

    async def patient() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append("time-out")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(COLOUR.get())
        return "never"

    own = copy_context()
    own.run(COLOUR.set, "green")
    task = asyncio.ensure_future(_await(patient(), own))
    while not ended:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["time-out", "green"]


async def test_one_that_is_thrown_away_is_closed() -> None:
    closed = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(COLOUR.get())

    own = copy_context()
    own.run(COLOUR.set, "grey")
    steps = begun(endless(), own).__await__()
    next(steps)
    steps.close()
    assert closed == ["grey"]


async def _await(work: Coroutine[Any, Any, Any], own: Context) -> object:
    return await begun(work, own)
