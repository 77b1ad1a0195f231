"""Awaits a coroutine in a context of its own, without a task of its own."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any


class Apart:
    """The rest of a coroutine that was begun in the context and waits for `awaited`.

    What it sets in context variables nobody sees after it. A task would do the same; to make one and to end
    it takes longer than many runs do.
    """

    __slots__ = ("_awaited", "_context", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], context: Context, awaited: Any) -> None:
        self._coroutine = coroutine
        self._context = context
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        within, coroutine, awaited = self._context.run, self._coroutine, self._awaited
        try:
            while True:
                try:
                    answer = yield awaited
                except GeneratorExit:
                    within(coroutine.close)
                    raise
                except BaseException as exc:
                    awaited = within(coroutine.throw, exc)
                else:
                    awaited = within(coroutine.send, answer)
        except StopIteration as end:
            return end.value
