"""The one way to Redis: connections, time limits, and errors turned into RoadDown.

`call` runs one thing within a time limit. Given a command, it answers with the server's plain reply (RESP2,
decoded to text); given a function, with what redis-py makes of it:

    await link.call("SET", key, owner, "NX", "PX", 30_000)          # "OK" or None
    await link.call(lambda: link.client.publish(channel, text))     # int
    await link.call("XREAD", "BLOCK", 1000, ..., patience=1 + PATIENCE)

`pipeline` runs many commands in one round trip, `script` runs Lua by its hash. All three raise RoadDown, or
its kind Refused when Redis answered with an error; nothing is retried here. Whoever is cancelled leaves no
half-read reply behind: the connection is closed, and the next call gets another one.

`client` has no time limits of its own: use it inside of `call`, or for Pub/Sub, which keeps a connection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, overload

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as TooSlow

from noonday.domain.errors import Invalid, Problem, RoadDown
from noonday.patience import Patience

PATIENCE = 2.0  # seconds for a call that does not block, connecting included
_FREE_WITHIN = 1.0  # seconds, when all connections are taken
_MOST_CONNECTIONS = 32

T = TypeVar("T")
Argument = str | bytes | int | float
Command = Sequence[Argument]


class Refused(RoadDown):
    """Redis answered with an error; `code` is its first word, such as NOGROUP."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class RedisLink:
    """Connections to one Redis or Valkey, shared by the road, the leadership, the locks and the ears."""

    def __init__(self, url: str) -> None:
        options = _options(url)
        self._secrets = [str(options[name]) for name in ("password", "ssl_password") if options.get(name)]
        self._pool = BlockingConnectionPool(**options)
        make: Callable[[], object] = self._pool.make_connection
        try:
            make()
        except (TypeError, ValueError, RedisError):
            raise _no_url("asks for something unknown after its question mark") from None
        self.client = Redis(connection_pool=self._pool)
        self._plain = Redis(connection_pool=self._pool)
        self._plain.response_callbacks.clear()
        self._execute: Callable[..., Awaitable[Any]] = self._plain.execute_command
        self._closed = False

    async def close(self) -> None:
        """Every connection, those of running calls too."""
        self._closed = True
        with suppress(RedisError, OSError):
            await self._pool.aclose()

    @overload
    async def call(self, work: Callable[[], Awaitable[T]], /, *, patience: float = PATIENCE) -> T: ...

    @overload
    async def call(self, work: str, /, *arguments: Argument, patience: float = PATIENCE) -> Any: ...

    async def call(
        self, work: Callable[[], Awaitable[Any]] | str, /, *arguments: Argument, patience: float = PATIENCE
    ) -> Any:
        """The reply to a command, or what the function gives, within `patience` seconds."""
        if self._closed:
            raise RoadDown("the link to Redis is closed")
        try:
            async with Patience(patience):
                if callable(work):
                    return await work()
                return await self._execute(work, *arguments)
        except (Broken, TooSlow, TimeoutError, OSError) as exc:
            await self._forget_idle_connections()
            self._fail(exc, patience)
        except RedisError as exc:
            self._fail(exc, patience)

    async def pipeline(
        self, commands: Sequence[Command], *, atomic: bool = False, patience: float = PATIENCE
    ) -> list[Any]:
        """The plain replies to all of them, in one round trip. `atomic`: as one MULTI, all or nothing.

        Raises the first error after the others have run.
        """
        if not commands:
            return []

        async def run() -> list[Any]:
            async with self._plain.pipeline(transaction=atomic) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return await pipe.execute(raise_on_error=False)

        replies = await self.call(run, patience=patience)
        for reply in replies:
            if isinstance(reply, RedisError):
                self._fail(reply, patience)
        return replies

    async def script(self, lua: str, keys: Sequence[str], args: Sequence[Argument] = ()) -> Any:
        """The plain reply of a Lua script; its text travels only to a server that does not know it yet."""
        try:
            return await self.call("EVALSHA", _sha1(lua), len(keys), *keys, *args)
        except Refused as exc:
            if exc.code != "NOSCRIPT":
                raise
        return await self.call("EVAL", lua, len(keys), *keys, *args)

    async def _forget_idle_connections(self) -> None:
        """What broke one of them may have broken all; none of them shall cost another time-out."""
        with suppress(RedisError, OSError):
            await self._pool.disconnect(inuse_connections=False)

    def _fail(self, exc: Exception, patience: float) -> NoReturn:
        text = " ".join(str(exc).split())[:300] or type(exc).__name__
        if isinstance(exc, TimeoutError):
            text = f"no answer within {patience:g} s"
        leaks = [secret for secret in self._secrets if secret in text]
        for secret in leaks:
            text = text.replace(secret, "***")
        down = RoadDown(f"Redis cannot be used: {text}")
        if isinstance(exc, ResponseError):
            down = Refused(exc.status_code or text.split(" ", 1)[0], f"Redis refused: {text}")
        raise down from None if leaks else exc


def _options(url: str) -> dict[str, Any]:
    """The URL may set what it likes (TLS, names, sizes), except for what the calls rely on."""
    try:
        told = dict(parse_url(url))
    except ValueError:  # not shown, nor the value: either may hold the password
        raise _no_url("has no form that Redis knows: redis://, rediss:// or unix://") from None
    defaults = {
        "max_connections": _MOST_CONNECTIONS,
        "timeout": _FREE_WITHIN,
        "socket_connect_timeout": None,  # as below
        "socket_read_size": 256 * 1024,  # as much as the event loop reads at once
    }
    fixed = {
        "protocol": 2,
        "decode_responses": True,
        "encoding_errors": "replace",  # what others wrote must not break the reading
        "socket_timeout": None,  # `call` sets the limit, on the whole and not on each read
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,
    }
    return defaults | told | fixed


def _no_url(why: str) -> Invalid:
    return Invalid(Problem("REDIS_URL", f"{why}; are special characters of the password %-encoded?"))


@lru_cache(maxsize=64)
def _sha1(lua: str) -> str:
    return hashlib.sha1(lua.encode(), usedforsecurity=False).hexdigest()
