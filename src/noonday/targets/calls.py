"""One HTTP call, made safely: vetted, signed, bounded in time and size, never redirected."""

from __future__ import annotations

import asyncio
import codecs
import errno
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import lru_cache, partial
from typing import NamedTuple

from yarl import URL

from noonday.domain.execution import Execution
from noonday.domain.outcome import Failed, Result, TimedOut
from noonday.http_client import (
    CODINGS,
    REPEATABLE,
    BrokeOff,
    CallFailed,
    NoAnswer,
    NoConnection,
    NotHttp,
    NotTrusted,
    Opener,
    Origin,
    Pool,
    head_of,
)
from noonday.ports import Run
from noonday.targets.answers import NO_HEADERS, Answer, bare_result
from noonday.targets.bounds import cut_text
from noonday.targets.config import TargetsConfig
from noonday.targets.headers import callback_headers, job_headers, own_headers
from noonday.targets.limits import Limits
from noonday.targets.network import Refused, vet
from noonday.targets.resolver import VettingResolver, guarded_socket

_MAX_JSON = 1024 * 1024
_LINES = frozenset({"text/plain", "text/event-stream", "application/x-ndjson"})  # a service's output
# Servers close idle connections after five seconds or more; closing first avoids a call into a closing one.
_KEEP_ALIVE_SECONDS = 3.0
# What this machine has run out of says nothing of the target.
_OUR_OWN = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})


class Call(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str] = NO_HEADERS  # the job's own
    body: bytes = b""
    content_type: str | None = None
    callback: bool = False  # may answer 202 and report later


class _Reading:
    """What is known of the answer so far; a cancelled call keeps it."""

    __slots__ = (
        "_chunks",
        "_clock",
        "_cut",
        "_decoder",
        "_first_byte",
        "_headers",
        "_limit",
        "_received",
        "_started",
        "_status",
        "_tell",
        "_url",
    )

    def __init__(self, url: URL, config: TargetsConfig, tell: Callable[[str], None] | None) -> None:
        self._url = url
        self._tell = tell  # where lines go that are written as the work goes on
        self._decoder: codecs.IncrementalDecoder | None = None  # of an answer that consists of such lines
        self._clock = config.clock
        self._limit = config.max_body_read
        self._started = self._clock.monotonic()
        self._chunks: list[bytes] = []  # the beginning
        self._received = 0
        self._first_byte = 0
        self._status: int | None = None  # none while its head has not come
        self._headers: Mapping[str, str] = NO_HEADERS
        self._cut = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._status, self._headers = status, headers
        self._first_byte = self._elapsed()
        if self._tell is not None and _kind(headers) in _LINES:
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, chunk: bytes) -> bool:
        """False when enough was read."""
        before = self._received
        chunk = chunk[: self._limit - before + 1]
        self._received += len(chunk)
        if self._decoder is not None and self._tell is not None:
            self._tell(self._decoder.decode(chunk))
        if before < _MAX_JSON:
            self._chunks.append(chunk[: _MAX_JSON - before])
        self._cut = self._received > self._limit
        return not self._cut

    def end(self) -> None:
        if self._decoder is not None and self._tell is not None:
            self._tell(self._decoder.decode(b"", final=True))

    def _elapsed(self) -> int:
        return round((self._clock.monotonic() - self._started) * 1000)

    def answer(self) -> Answer:
        assert self._status is not None
        return Answer(
            url=self._url,
            status=self._status,
            headers=self._headers,
            body=b"".join(self._chunks),
            received=self._received,
            cut=self._cut,
            first_byte_ms=self._first_byte,
            total_ms=self._elapsed(),
        )

    def result(self) -> Result:
        if self._status is None:
            return Result(metadata={"timing_ms": {"total": self._elapsed()}})
        return bare_result(self.answer())


class Caller:
    """The one HTTP client of an instance; made on first use, inside the loop that uses it."""

    def __init__(self, config: TargetsConfig, resolver: VettingResolver | None = None) -> None:
        self._config = config
        self._resolver = resolver
        self._pool: Pool | None = None
        self._limits = Limits()
        self._vet = lru_cache(maxsize=1024)(partial(vet, policy=config.networks))
        self._usual = [(name, name.lower(), value) for name, value in _usual(config).items()]

    def send(self, run: Run, call: Call) -> Awaitable[Answer | Failed | TimedOut]:
        """For a run: what is known of a cancelled call is kept in it."""
        run.tidy = True  # nobody else's code is in its task
        return self.deliver(run.claim.execution, call, run.timeout, run)

    async def deliver(
        self, execution: Execution, call: Call, patience: timedelta, run: Run | None = None
    ) -> Answer | Failed | TimedOut:
        try:
            url = self._vet(call.url)
            headers = self._headers(execution, call)
        except Refused as exc:
            return Failed(error=f"not called: {exc}", retryable=False)
        reading = _Reading(url, self._config, run.output if run is not None and call.callback else None)
        try:
            with self._limits.within(patience.total_seconds()) as limit:
                return await self._exchange(url, call, headers, reading)
        except asyncio.CancelledError:
            if run is not None:
                run.keep(reading.result())
            raise
        except TimeoutError:
            if limit.expired:
                return TimedOut(after=patience, result=reading.result())
            seconds = self._config.connect_timeout.total_seconds()
            text = f"no connection to {_place(url)} within {seconds:g} s"
            return Failed(error=text, down=True, result=reading.result())
        except Refused as exc:
            return Failed(error=f"not called: {exc}", retryable=False, result=reading.result())
        except (CallFailed, OSError, ValueError) as exc:
            return _broken(url, exc, reading.result())

    def _headers(self, execution: Execution, call: Call) -> dict[str, str]:
        """The job's own come last, and before those that are only usual."""
        headers = own_headers(self._config, execution, call.body)
        if call.callback:
            headers |= callback_headers(self._config, execution)
        given = job_headers(call.headers)
        names = {name.lower() for name in given}
        if call.content_type and "content-type" not in names:
            headers["Content-Type"] = call.content_type
        for name, lowered, value in self._usual:
            if lowered not in names:
                headers[name] = value
        headers.update(given)
        return headers

    async def _exchange(self, url: URL, call: Call, headers: dict[str, str], reading: _Reading) -> Answer:
        await self._connections().send(
            _origin(url),
            head_of(call.method, url, headers, len(call.body)) + call.body,
            reading,
            repeatable=call.method in REPEATABLE,
            bodiless=call.method == "HEAD",
        )
        reading.end()
        return reading.answer()

    def _connections(self) -> Pool:
        if self._pool is None:
            config = self._config
            patience = config.connect_timeout
            if self._resolver is None:
                self._resolver = VettingResolver(config.networks, patience)
            guarded = guarded_socket(config.networks)
            opener = Opener(self._resolver.resolve, patience.total_seconds(), guarded)
            self._pool = Pool(opener.open, per_origin=config.per_host_limit, keep_alive=_KEEP_ALIVE_SECONDS)
        return self._pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        resolver, self._resolver = self._resolver, None
        if resolver is not None:
            await resolver.close()
        self._limits.close()


def _usual(config: TargetsConfig) -> dict[str, str]:
    return {
        "User-Agent": config.user_agent,
        "Accept": "application/json, */*;q=0.5",
        "Accept-Encoding": CODINGS,
    }


def _kind(headers: Mapping[str, str]) -> str:
    """What an answer consists of, without the parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


_origin = lru_cache(maxsize=1024)(Origin.of)


def _place(url: URL) -> str:
    return f"{url.host}:{url.port}"


def _broken(url: URL, exc: Exception, result: Result) -> Failed:
    """A call without a whole answer. The texts name the host, never the URL: it may hold a secret."""
    place = _place(url)
    match exc:
        case NotTrusted():
            text = f"the certificate of {place} is not trusted: {exc}"
            return Failed(error=cut_text(text, 500), down=True, result=result)
        case NoConnection():
            refused = isinstance(exc.error, PermissionError)
            text = cut_text(f"could not connect to {place}: {exc}", 500)
            down = None if refused or exc.error.errno in _OUR_OWN else True
            return Failed(error=text, retryable=not refused, down=down, result=result)
        case NoAnswer():
            text = f"{place} closed the connection without an answer"
            return Failed(error=text, down=True, result=result)
        case BrokeOff():
            return Failed(error=f"the answer of {place} broke off: {exc}", down=True, result=result)
        case NotHttp():
            text = f"the call to {place} failed: the answer is not HTTP: {exc}"
            return Failed(error=cut_text(text, 500), down=True, result=result)
        case _:
            said = str(exc).replace(str(url), place)
            text = f"the call to {place} failed: {type(exc).__name__}: {said}"
            ours = isinstance(exc, ValueError) or getattr(exc, "errno", None) in _OUR_OWN
            return Failed(error=cut_text(text, 500), down=None if ours else True, result=result)
