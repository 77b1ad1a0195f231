"""A connection to a server: one exchange at a time, as many after one another as the server likes."""

from __future__ import annotations

import asyncio
from typing import cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade

from noonday.http_client.answering import LONGEST_SILENCE, Answer, Reader
from noonday.http_client.errors import BrokeOff, NoAnswer, NotHttp


class Connection(asyncio.Protocol):
    """Whoever cancels an exchange closes its connection: nobody knows what would still come on it."""

    def __init__(self) -> None:
        self.fresh = True  # no exchange on it has ended well
        self.idle_since = 0.0  # of the loop's clock
        self._loop = asyncio.get_running_loop()
        self._answer = Answer()
        self._done: asyncio.Future[None] | None = None  # of the exchange that is under way
        self._transport: asyncio.Transport | None = None

    async def exchange(self, request: bytes, reader: Reader, *, bodiless: bool = False) -> bool:
        """Returns whether the connection can be used again; raises CallFailed."""
        assert self._done is None, "one at a time"
        transport, answer = self._transport, self._answer
        if transport is None or transport.is_closing():
            raise NoAnswer
        answer.expect(reader, bodiless)
        done = self._done = self._loop.create_future()
        transport.write(request)
        try:
            await done
        except BaseException:
            self.close()
            raise
        finally:
            self._done = None
            answer.forget()
        if answer.lasting and not answer.surplus and not transport.is_closing():
            self.fresh, self.idle_since = False, self._loop.time()
            return True
        self.close()
        return False

    @property
    def usable(self) -> bool:
        """As far as is known here."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """At once."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio tells:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        done, answer = self._done, self._answer
        parser = answer.parser
        if done is None or done.done() or parser is None:
            self.close()  # nobody asked
            return
        answer.came = True
        answer.silence += len(data)
        try:
            parser.feed_data(data)
            if answer.silence > LONGEST_SILENCE:
                raise NotHttp("there is too much around its body")
        except HttpParserCallbackError as exc:
            self._fail(exc.__context__ or exc)
        except (HttpParserError, HttpParserUpgrade) as exc:
            if not answer.over:
                self._fail(NotHttp(str(exc)))
        except NotHttp as exc:
            self._fail(exc)
        if answer.over and not done.done():
            done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = self._answer.parser = None
        if self._done is None or self._done.done():
            return
        try:
            if not self._answer.came:
                raise NoAnswer
            if exc is not None:
                raise BrokeOff from exc
            self._answer.closed()
        except (NoAnswer, BrokeOff) as failed:
            self._fail(failed)
        else:
            self._done.set_result(None)

    def _fail(self, exc: BaseException) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(exc)
