"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(look: Callable[[], Awaitable[T]], seconds: float = 30) -> T: ...
@overload
async def eventually(look: Callable[[], T], seconds: float = 30) -> T: ...
async def eventually(look: Callable[[], Any], seconds: float = 30) -> Any:
    """Look again and again until there is something to see."""
    async with asyncio.timeout(seconds):
        while True:
            found = look()
            seen = await found if isinstance(found, Awaitable) else found
            if seen:
                return seen
            await asyncio.sleep(0.005)
