"""Where users' locks are kept: keys in Redis, or rows in the database, with the same promises."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self
from weakref import WeakSet

from noonday.clock import Clock, SystemClock
from noonday.domain.errors import Conflict, Unavailable, invalid
from noonday.leadership.keys import RedisKey, millis
from noonday.leadership.lock import Keeper, Lock, LockOptions
from noonday.redis_link import RedisLink
from noonday.store import locks, migrate
from noonday.store.database import Database
from noonday.store.engines import StoreOptions

DEFAULT_TTL = timedelta(seconds=60)
LONGEST_NAME = 200
SHORTEST, LONGEST = timedelta(milliseconds=100), timedelta(days=1)
_TIDIED_EVERY = 1000  # locks taken
_REDIS = ("redis://", "rediss://", "unix://")

# The number grows with the clock, so that it does so even after the counter was lost or forgotten.
_TAKE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local time = redis.call('TIME')
local number = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, time[1] * 1000000 + time[2])
local fence = string.format('%.0f', number)
redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
"""

_EXTEND = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""


class RedisLocks:
    """The key `lock:<name>` holds the owner's token."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def take(self, name: str, owner: str, ttl: timedelta) -> int | None:
        keys = [f"lock:{name}", f"lock-fence:{name}"]
        fence = await self._link.script(_TAKE, keys, [owner, millis(ttl), millis(locks.REMEMBERED)])
        return None if fence is None else int(fence)

    async def extend(self, name: str, owner: str, ttl: timedelta) -> bool:
        return bool(await self._link.script(_EXTEND, [f"lock:{name}"], [owner, millis(ttl)]))

    async def free(self, name: str, owner: str) -> bool:
        return await RedisKey(self._link, f"lock:{name}").free(owner)


class DatabaseLocks:
    """A row of the table `locks`, on the database's clock."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._taken = 0

    async def take(self, name: str, owner: str, ttl: timedelta) -> int | None:
        if self._taken % _TIDIED_EVERY == 0:
            await self._db.write(partial(locks.forget, now=self._clock.now()))
        self._taken += 1
        return await self._db.write(
            partial(locks.take, name=name, owner=owner, ttl=ttl, now=self._clock.now())
        )

    async def extend(self, name: str, owner: str, ttl: timedelta) -> bool:
        return await self._db.write(
            partial(locks.extend, name=name, owner=owner, ttl=ttl, now=self._clock.now())
        )

    async def free(self, name: str, owner: str) -> bool:
        return await self._db.write(partial(locks.free, name=name, owner=owner, now=self._clock.now()))


class Locks:
    """Locks that all programs with the same URL share: `redis://…`, `postgresql://…` or `sqlite:///…`.

    async with Locks("redis://127.0.0.1/0") as locks, locks.lock("schedule:report") as lock:
        await write_report(number=lock.fence)
    """

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self._url = url
        self._clock = clock or SystemClock()
        self._keeper: Keeper | None = None
        self._exits = AsyncExitStack()
        self._made: WeakSet[Lock] = WeakSet()

    async def __aenter__(self) -> Self:
        if self._url.startswith(_REDIS):
            link = RedisLink(self._url)
            self._exits.push_async_callback(link.close)
            self._keeper = RedisLocks(link)
        else:
            await asyncio.to_thread(migrate.upgrade, self._url)
            db = Database(self._url, StoreOptions(connections=2, readers=1))
            self._exits.push_async_callback(db.close)
            self._keeper = DatabaseLocks(db, self._clock)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        """What is still held is released."""
        self._keeper = None
        self._exits.push_async_callback(self._release_all)
        await self._exits.aclose()

    async def _release_all(self) -> None:
        for lock in list(self._made):
            with suppress(Unavailable):  # it ends by itself
                await lock.release()

    def lock(
        self,
        name: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        wait: timedelta | None = None,
        renew: bool = True,
    ) -> Lock:
        """Not taken yet: `async with` it, or `acquire` and `release` it."""
        if self._keeper is None:
            raise Conflict("these locks are not open: use them inside of `async with`")
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise invalid("name", name, f"must be 1 to {LONGEST_NAME} printable characters")
        if not SHORTEST <= ttl <= LONGEST:
            raise invalid("ttl", str(ttl), f"must be between {SHORTEST} and {LONGEST}")
        made = Lock(self._keeper, self._clock, name, LockOptions(ttl=ttl, wait=wait, renew=renew))
        self._made.add(made)
        return made
