"""The connections of an instance: kept for a while, and only so many to one place at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from weakref import WeakSet

from noonday.http_client.answering import Reader
from noonday.http_client.connection import Connection
from noonday.http_client.errors import NoAnswer
from noonday.http_client.opening import Origin

Open = Callable[[Origin], Awaitable[Connection]]


class _Place:
    """One origin: who is there, who waits outside, and the connections that nobody uses just now."""

    __slots__ = ("busy", "idle", "waiting")

    def __init__(self) -> None:
        self.busy = 0
        self.idle: list[Connection] = []  # the one that was used last comes first
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """In the order of asking: whoever leaves hands the turn to the one who waits longest."""
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self.waiting:
                self.waiting.remove(turn)
            elif not turn.cancelled():
                self.leave()  # the turn came in the same moment
            raise

    def leave(self) -> None:
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.busy -= 1

    def kept(self) -> Connection | None:
        """One that is still good."""
        while self.idle:
            connection = self.idle.pop()
            if connection.usable:
                return connection
        return None

    @property
    def deserted(self) -> bool:
        return not self.busy and not self.idle


class Pool:
    def __init__(self, open_one: Open, *, per_origin: int, keep_alive: float) -> None:
        self._open_one = open_one
        self._per_origin = per_origin
        self._keep_alive = keep_alive  # seconds
        self._places: dict[Origin, _Place] = {}
        self._opened: WeakSet[Connection] = WeakSet()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(
        self, origin: Origin, request: bytes, reader: Reader, *, repeatable: bool, bodiless: bool = False
    ) -> None:
        """One call. Raises CallFailed, or TimeoutError when no connection could be made in time.

        A connection that was kept may be closed by the server just as it is used. What may be done twice is
        then done again, on another one.
        """
        place = self._places.get(origin) or self._places.setdefault(origin, _Place())
        if place.busy < self._per_origin:
            place.busy += 1
        else:
            await place.wait()
        try:
            while True:
                connection = place.kept() or await self._open(origin)
                try:
                    again = await connection.exchange(request, reader, bodiless=bodiless)
                    break
                except NoAnswer:
                    if connection.fresh or not repeatable or self._closed:
                        raise
            if again:
                self._keep(place, connection)
        finally:
            place.leave()
            if place.deserted:
                self._places.pop(origin, None)

    async def _open(self, origin: Origin) -> Connection:
        if self._closed:
            raise NoAnswer
        connection = await self._open_one(origin)
        self._opened.add(connection)
        if self._closed:
            connection.close()
        return connection

    def _keep(self, place: _Place, connection: Connection) -> None:
        if self._closed:
            connection.close()
            return
        place.idle.append(connection)
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(self._keep_alive, self._sweep)

    def _sweep(self) -> None:
        """Closes what nobody has used for long, before the server does: a call might meet its closing."""
        loop = asyncio.get_running_loop()
        long_ago = loop.time() - self._keep_alive
        any_left = False
        for origin, place in list(self._places.items()):
            for connection in place.idle:
                if connection.idle_since <= long_ago:
                    connection.close()
            place.idle = [connection for connection in place.idle if connection.usable]
            any_left = any_left or bool(place.idle)
            if place.deserted:
                del self._places[origin]
        self._sweeping = loop.call_later(self._keep_alive / 4, self._sweep) if any_left else None

    def close(self) -> None:
        """Calls in flight fail, and those that wait for their turn."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in tuple(self._opened):
            connection.close()
