"""A Redis key that belongs to whoever set it, until its time is over."""

from __future__ import annotations

from datetime import timedelta

from noonday.redis_link import RedisLink

# A key without an end is no lease: somebody set it by hand, and nobody would ever lead again.
_TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and redis.call('PTTL', KEYS[1]) ~= -1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

_FREE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


class RedisKey:
    def __init__(self, link: RedisLink, key: str) -> None:
        self._link = link
        self._key = key

    async def take(self, holder: str, ttl: timedelta) -> bool:
        """Ours from now on, if it was ours or nobody's."""
        return bool(await self._link.script(_TAKE, [self._key], [holder, millis(ttl)]))

    async def free(self, holder: str) -> bool:
        """Nobody's, if it was ours."""
        return bool(await self._link.script(_FREE, [self._key], [holder]))

    async def holder(self) -> tuple[str, timedelta] | None:
        """Whose it is, and for how long."""
        holder, left = await self._link.pipeline([("GET", self._key), ("PTTL", self._key)])
        return None if holder is None else (str(holder), timedelta(milliseconds=max(int(left), 0)))


def millis(span: timedelta) -> int:
    return max(int(span.total_seconds() * 1000), 1)
