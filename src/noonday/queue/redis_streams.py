"""Redis Streams as the road: one stream per lane, one group, one consumer per instance, ids alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from noonday.domain.job import Lane
from noonday.ports import Delivery, Parcel
from noonday.redis_link import RedisLink


class RedisStreams:
    """The Queue of many instances. `consumer` is the instance's id."""

    def __init__(self, link: RedisLink, *, prefix: str, consumer: str) -> None: ...

    async def check(self) -> list[str]:
        """What is wrong with this Redis as a road, in words for the log: version, eviction policy."""
        raise NotImplementedError

    async def put(self, parcels: Sequence[Parcel]) -> None:
        raise NotImplementedError

    async def take(self, limit: int, wait: timedelta) -> list[Delivery]:
        raise NotImplementedError

    async def ack(self, deliveries: Collection[Delivery]) -> None:
        raise NotImplementedError

    async def hand_back(self, deliveries: Collection[Delivery]) -> None:
        raise NotImplementedError

    async def keep(self, deliveries: Collection[Delivery]) -> None:
        raise NotImplementedError

    async def abandoned(self, idle: timedelta, limit: int) -> list[Delivery]:
        raise NotImplementedError

    async def mine(self) -> list[Delivery]:
        raise NotImplementedError

    async def missing(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        raise NotImplementedError

    async def tidy(self, alive: Collection[str]) -> None:
        raise NotImplementedError

    async def depths(self) -> Mapping[Lane, int]:
        raise NotImplementedError
