"""A stream of server-sent events to one client, which ends when either side goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from noonday.api.event_shapes import Wanted, beat, greeting, resync, without_number
from noonday.api.events import Hub, Listener, Told
from noonday.clock import Clock
from noonday.domain.errors import Unavailable

__all__ = ["EventStream"]

BEAT: Final = 15.0  # seconds between signs of life
_PATIENCE: Final = 30.0  # seconds for a client to take what was sent


class _Left(Exception):
    """The client is gone."""


class EventStream(Response):
    """`still` says at each beat whether the caller may still listen: keys are revoked, tokens run out."""

    media_type = "text/event-stream"

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        wanted: Wanted,
        *,
        after: int | None,
        limit: int | None,
        still: Callable[[], Awaitable[bool]],
        every: float = BEAT,
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._clock = clock
        self._wanted = wanted
        self._after = after
        self._left = limit
        self._still = still
        self._every = every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._hub.listening(self._after) as listener:
            whole = False
            try:
                async with asyncio.TaskGroup() as group:
                    watch = group.create_task(_until_it_leaves(receive), name="events listener")
                    await self._stream(listener, send)
                    whole = True
                    watch.cancel()
            except* (_Left, TimeoutError, OSError):
                pass  # nobody is left who could be told
        if whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, listener: Listener, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await _put(send, greeting(listener.position))
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + self._every
        while not listener.closed and self._left != 0:
            found: list[Told] | None = []
            try:
                async with asyncio.timeout_at(beat_at):
                    found = await listener.next()
            except TimeoutError:
                pass
            except Unavailable:
                return  # the client comes again, and then perhaps the database is back
            await self._bring(found, listener, send)
            if loop.time() >= beat_at:
                if not await self._still():
                    return
                await _put(send, beat(listener.position))
                beat_at = loop.time() + self._every

    async def _bring(self, found: list[Told] | None, listener: Listener, send: Send) -> None:
        if found is None:
            await _put(send, resync(listener.position, self._clock.now()))
            return
        seen = [told for told in found if self._wanted.sees(told.event)]
        if self._left is not None:
            seen = seen[: self._left]
            self._left -= len(seen)
        if seen:
            await _put(send, b"".join(map(self._form, seen)))

    def _form(self, told: Told) -> bytes:
        chunk = self._wanted.form(told.event, told.chunk)
        return without_number(chunk) if told.late else chunk


async def _put(send: Send, chunk: bytes) -> None:
    async with asyncio.timeout(_PATIENCE):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _until_it_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _Left
