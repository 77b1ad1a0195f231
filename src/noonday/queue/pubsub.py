"""Redis Pub/Sub as ears: what other programs publish, and what other instances commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager

from noonday.ports import Message
from noonday.redis_link import RedisLink


class RedisReceiver:
    def __init__(self, link: RedisLink) -> None: ...

    def listen(
        self, channels: Collection[str], patterns: Collection[str]
    ) -> AbstractAsyncContextManager[AsyncIterator[Message]]:
        raise NotImplementedError
