"""One Pub/Sub connection to Redis: what it follows may change as it listens, and it notices its own death."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from redis.exceptions import RedisError

from noonday.domain.errors import RoadDown
from noonday.domain.trigger import is_pattern
from noonday.ports import Message
from noonday.redis_link import PATIENCE, RedisLink

_QUIET = 5.0  # seconds without a word, after which it asks whether the line is dead
_CHUNK = 500  # names in one command


class Ear:
    """Every verb raises RoadDown when the connection is lost; it is of no use from then on."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._pubsub: Any = link.client.pubsub()
        self._followed: frozenset[str] = frozenset()
        self._heard: deque[Message] = deque()
        self._unanswered = 0  # subscriptions that Redis has not yet confirmed
        self._loop = asyncio.get_running_loop()
        self._spoke_at = self._loop.time()
        self._asked = False

    async def follow(self, channels: Collection[str]) -> None:
        """Exactly these from now on: Redis has said so when this returns."""
        wanted = frozenset(channels)
        gone, new = self._followed - wanted, wanted - self._followed
        for command, names in (
            (self._pubsub.subscribe, _plain(new)),
            (self._pubsub.psubscribe, _patterns(new)),
            (self._pubsub.unsubscribe, _plain(gone)),
            (self._pubsub.punsubscribe, _patterns(gone)),
        ):
            await self._send(command, names)
        self._followed = wanted
        until = self._loop.time() + PATIENCE
        while self._unanswered:
            left = until - self._loop.time()
            if left <= 0:
                raise RoadDown("Redis does not answer to a subscription")
            await self._hear(left)

    async def take(self, limit: int, wait: float) -> list[Message]:
        if not self._heard:
            await self._hear(wait)
        while self._heard and len(self._heard) < limit and await self._hear(0.0):
            pass
        found = list(islice(self._heard, limit))
        for _ in found:
            self._heard.popleft()
        return found

    async def close(self) -> None:
        with suppress(RedisError, OSError):
            await self._pubsub.aclose()

    async def _send(self, command: Callable[..., Awaitable[Any]], names: Sequence[str]) -> None:
        for at in range(0, len(names), _CHUNK):
            chunk = names[at : at + _CHUNK]
            await self._link.call(partial(command, *chunk))
            self._unanswered += len(chunk)

    async def _hear(self, wait: float) -> bool:
        """One thing that Redis says, if it says something within so many seconds."""
        now = self._loop.time()
        quiet = now - self._spoke_at
        if self._asked and quiet > _QUIET + PATIENCE:
            raise RoadDown("Redis fell silent")
        if not self._asked and quiet > _QUIET:
            await self._link.call(self._pubsub.ping)
            self._asked = True
        said = await self._link.call(lambda: self._pubsub.get_message(timeout=wait), patience=wait + PATIENCE)
        if said is None:
            return False
        self._spoke_at, self._asked = self._loop.time(), False
        match said["type"]:
            case "message":
                self._heard.append(Message(said["channel"], said["data"], said["channel"]))
            case "pmessage":
                self._heard.append(Message(said["channel"], said["data"], said["pattern"]))
            case "subscribe" | "psubscribe" | "unsubscribe" | "punsubscribe":
                self._unanswered -= 1
            case _:
                pass
        return True


def _plain(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not is_pattern(name))


def _patterns(names: Iterable[str]) -> list[str]:
    return sorted(filter(is_pattern, names))
