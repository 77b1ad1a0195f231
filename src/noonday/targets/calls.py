"""One HTTP call, made safely: vetted, signed, bounded in time and size, never redirected."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable
from datetime import timedelta

from yarl import URL

from noonday.domain.execution import Execution
from noonday.domain.outcome import Failed, Result, TimedOut
from noonday.http_client import (
    BrokeOff,
    CallFailed,
    NoAnswer,
    NoConnection,
    NotHttp,
    NotTrusted,
    Opener,
    Pool,
)
from noonday.ports import Run
from noonday.targets.answers import Answer
from noonday.targets.bounds import cut_text
from noonday.targets.config import TargetsConfig
from noonday.targets.headers import callback_headers, own_headers
from noonday.targets.limits import Limits
from noonday.targets.network import Refused
from noonday.targets.prepared import Prepared, Preparer
from noonday.targets.reading import Reading
from noonday.targets.resolver import VettingResolver, guarded_socket

# Servers close idle connections after five seconds or more; closing first avoids a call into a closing one.
_KEEP_ALIVE_SECONDS = 3.0
# What this machine has run out of says nothing of the target.
_OUR_OWN = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})


class Caller:
    """The one HTTP client of an instance; made on first use, inside the loop that uses it."""

    def __init__(self, config: TargetsConfig, resolver: VettingResolver | None = None) -> None:
        self._config = config
        self._resolver = resolver
        self._pool: Pool | None = None
        self._limits = Limits()
        self.prepare = Preparer(config).prepare

    def send(self, run: Run, call: Prepared) -> Awaitable[Answer | Failed | TimedOut]:
        """For a run: what is known of a cancelled call is kept in it."""
        run.tidy = True  # nobody else's code is in its task
        return self.deliver(run.claim.execution, call, run.timeout, run)

    async def deliver(
        self, execution: Execution, call: Prepared, patience: timedelta, run: Run | None = None
    ) -> Answer | Failed | TimedOut:
        reading = Reading(call.url, self._config, run.output if run is not None and call.callback else None)
        try:
            with self._limits.within(patience.total_seconds()) as limit:
                await (self._pool or self._connections()).send(
                    call.origin,
                    call.request(self._lines(execution, call)),
                    reading,
                    repeatable=call.repeatable,
                    bodiless=call.bodiless,
                )
            reading.end()
            return reading.answer()
        except asyncio.CancelledError:
            if run is not None:
                run.keep(reading.result())
            raise
        except TimeoutError:
            if limit.expired:
                return TimedOut(after=patience, result=reading.result())
            seconds = self._config.connect_timeout.total_seconds()
            text = f"no connection to {_place(call.url)} within {seconds:g} s"
            return Failed(error=text, down=True, result=reading.result())
        except Refused as exc:
            return Failed(error=f"not called: {exc}", retryable=False, result=reading.result())
        except (CallFailed, OSError, ValueError) as exc:
            return _broken(call.url, exc, reading.result())

    def _lines(self, execution: Execution, call: Prepared) -> str:
        """The headers of this run."""
        lines = own_headers(self._config, execution, call.body)
        return lines + callback_headers(self._config, execution) if call.callback else lines

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
