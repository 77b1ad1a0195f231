"""How late a bare timer of another process is meanwhile: what of the lateness is the machine's own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

__all__ = ["Stalls", "watched"]

# Wakes every two milliseconds until its input ends, and tells how late it was: 99 of a hundred, and at most.
_TIMER: Final = """
import json, select, sys, time
late, last = [0.0], time.perf_counter()
while not select.select([sys.stdin], [], [], 0.002)[0]:
    now = time.perf_counter()
    late.append(max(0.0, now - last - 0.002))
    last = now
late.sort()
print(json.dumps([late[int(len(late) * 0.99)] * 1000, late[-1] * 1000]))
"""


@dataclass(slots=True)
class Stalls:
    p99_ms: float | None = None  # None: it could not be watched
    max_ms: float | None = None


@asynccontextmanager
async def watched() -> AsyncIterator[Stalls]:
    """The figures are there when the context has ended."""
    stalls, pipe = Stalls(), asyncio.subprocess.PIPE
    timer = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _TIMER, stdin=pipe, stdout=pipe
    )
    try:
        yield stalls
    finally:
        told, _ = await timer.communicate(b"")  # which ends its input
        with suppress(ValueError):
            stalls.p99_ms, stalls.max_ms = json.loads(told)
