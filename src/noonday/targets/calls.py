"""One HTTP call, made safely: vetted, signed, bounded in time and size, never redirected."""

from __future__ import annotations

import asyncio
import codecs
import errno
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import lru_cache, partial
from typing import NamedTuple

import aiohttp
from multidict import istr
from yarl import URL

from noonday.domain.execution import Execution
from noonday.domain.outcome import Failed, Result, TimedOut
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
_CONTENT_TYPE = istr("Content-Type")
_NO_TYPE = (_CONTENT_TYPE,)  # the client would make one up for an empty body
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
        "_limit",
        "_received",
        "_response",
        "_started",
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
        self._response: aiohttp.ClientResponse | None = None
        self._cut = False

    def begin(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._first_byte = self._elapsed()
        if self._tell is not None and response.content_type in _LINES:
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
        response = self._response
        assert response is not None
        return Answer(
            url=self._url,
            status=response.status,
            headers=response.headers,
            body=b"".join(self._chunks),
            received=self._received,
            cut=self._cut,
            first_byte_ms=self._first_byte,
            total_ms=self._elapsed(),
        )

    def result(self) -> Result:
        if self._response is None:
            return Result(metadata={"timing_ms": {"total": self._elapsed()}})
        return bare_result(self.answer())


class Caller:
    """The one HTTP client of an instance; made on first use, inside the loop that uses it."""

    def __init__(self, config: TargetsConfig, resolver: VettingResolver | None = None) -> None:
        self._config = config
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._limits = Limits()
        self._vet = lru_cache(maxsize=1024)(partial(vet, policy=config.networks))

    def send(self, run: Run, call: Call) -> Awaitable[Answer | Failed | TimedOut]:
        """For a run: what is known of a cancelled call is kept in it."""
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
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return _broken(url, exc, reading.result())

    def _headers(self, execution: Execution, call: Call) -> dict[str, str]:
        headers = own_headers(self._config, execution, call.body)
        if call.callback:
            headers |= callback_headers(self._config, execution)
        given = job_headers(call.headers)
        if call.content_type and "content-type" not in map(str.lower, given):
            headers[_CONTENT_TYPE] = call.content_type
        headers.update(given)
        return headers

    async def _exchange(self, url: URL, call: Call, headers: dict[str, str], reading: _Reading) -> Answer:
        response = await self._client().request(
            call.method,
            url,
            data=aiohttp.BytesPayload(call.body) if call.body else None,
            allow_redirects=False,
            skip_auto_headers=None if call.content_type or call.method == "GET" else _NO_TYPE,
            middlewares=(_adding(headers),),
        )
        try:
            reading.begin(response)
            content = response.content
            # a short answer has come as a whole with its head, and is there without waiting
            while chunk := content.read_nowait() if content.is_eof() else await content.readany():
                if not reading.add(chunk):
                    response.close()
                    break
            reading.end()
        finally:
            if not response.closed:  # one that was read to its end has given back its connection
                response.release()
        return reading.answer()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            config = self._config
            if self._resolver is None:
                self._resolver = VettingResolver(config.networks, config.connect_timeout)
            connector = aiohttp.TCPConnector(
                resolver=self._resolver,
                use_dns_cache=False,  # a cached name would be a name that nobody checks again
                socket_factory=guarded_socket(config.networks),
                limit=0,
                limit_per_host=config.per_host_limit,
                keepalive_timeout=_KEEP_ALIVE_SECONDS,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": config.user_agent, "Accept": "application/json, */*;q=0.5"},
                cookie_jar=aiohttp.DummyCookieJar(),  # one job's cookies are none of another's
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=config.connect_timeout.total_seconds()
                ),
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        resolver, self._resolver = self._resolver, None
        if resolver is not None:
            await resolver.close()
        self._limits.close()


def _adding(headers: Mapping[str, str]) -> aiohttp.ClientMiddlewareType:
    """Puts the headers into a request at once. The client would look at each several times over."""

    def add(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> Awaitable[aiohttp.ClientResponse]:
        request.headers.update(headers)
        return send(request)

    return add


def _place(url: URL) -> str:
    return f"{url.host}:{url.port}"


def _broken(url: URL, exc: Exception, result: Result) -> Failed:
    """A call without a whole answer. The texts name the host, never the URL: it may hold a secret."""
    place = _place(url)
    match exc:
        case aiohttp.InvalidURL():
            return Failed(error=f"not called: the URL of {place} is not valid", retryable=False)
        case aiohttp.ClientConnectorCertificateError():
            text = f"the certificate of {place} is not trusted: {exc.certificate_error}"
            return Failed(error=cut_text(text, 500), down=True, result=result)
        case aiohttp.ClientConnectorError():
            refused = isinstance(exc.os_error, PermissionError)
            reason = exc.os_error.strerror or str(exc.os_error)
            text = cut_text(f"could not connect to {place}: {reason}", 500)
            down = None if refused or exc.os_error.errno in _OUR_OWN else True
            return Failed(error=text, retryable=not refused, down=down, result=result)
        case aiohttp.ServerDisconnectedError():
            text = f"{place} closed the connection without an answer"
            return Failed(error=text, down=True, result=result)
        case aiohttp.ClientPayloadError():
            return Failed(error=f"the answer of {place} broke off", down=True, result=result)
        case aiohttp.ClientResponseError():
            text = f"the call to {place} failed: the answer is not HTTP: {exc.message}"
            return Failed(error=cut_text(text, 500), down=True, result=result)
        case _:
            said = str(exc).replace(str(url), place)
            text = f"the call to {place} failed: {type(exc).__name__}: {said}"
            ours = isinstance(exc, ValueError) or getattr(exc, "errno", None) in _OUR_OWN
            return Failed(error=cut_text(text, 500), down=None if ours else True, result=result)
