"""What an instance has where there is a Redis: a road, the key of the leader, triggers, and ears."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from noonday.clock import Clock
from noonday.leadership.redis import RedisLeadership
from noonday.ports import Leadership, Queue, Receiver
from noonday.queue.notices import RedisNotices
from noonday.queue.pubsub import RedisReceiver
from noonday.queue.redis_streams import RedisStreams
from noonday.redis_link import RedisLink
from noonday.store.database import Database

__all__ = ["BesideRedis"]


class BesideRedis:
    """Makes each of them on one link; `instance_id` is its name on the road and as a leader."""

    def __init__(self, url: str, *, prefix: str, instance_id: str) -> None:
        self.link = RedisLink(url)
        self._prefix = prefix
        self._instance_id = instance_id

    async def close(self) -> None:
        await self.link.close()

    def streams(self) -> Queue:
        return RedisStreams(self.link, prefix=self._prefix, consumer=self._instance_id)

    def leadership(self, db: Database, clock: Clock, *, key: str, ttl: timedelta) -> Leadership:
        return RedisLeadership(self.link, db, clock, key=key, ttl=ttl, holder=self._instance_id)

    def receiver(self) -> Receiver:
        return RedisReceiver(self.link)

    def notices(self, origin: str, wake: Callable[[frozenset[str]], None]) -> RedisNotices:
        return RedisNotices(self.link, prefix=self._prefix, origin=origin, wake=wake)
