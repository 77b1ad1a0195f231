"""A connection to a server: one exchange at a time, as many after one another as the server likes."""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from noonday.http_client.answering import LONGEST_SILENCE, Answer, Reader
from noonday.http_client.errors import BrokeOff, NoAnswer, NotHttp

_NO_ANSWER: Final = Answer(cast(Reader, None), bodiless=True)


class Connection(asyncio.Protocol):
    """Whoever cancels an exchange closes its connection: nobody knows what would still come on it."""

    def __init__(self) -> None:
        self.idle_since = 0.0  # of the loop's clock
        self._answer: Answer = _NO_ANSWER
        self._done: asyncio.Future[None] | None = None  # of the exchange that is under way
        self._surplus = False  # more came than was asked for
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None

    async def exchange(self, request: bytes, reader: Reader, *, bodiless: bool = False) -> bool:
        """Returns whether the connection can be used again; raises CallFailed."""
        assert self._done is None, "one at a time"
        transport = self._transport
        if transport is None or not self.usable:
            raise NoAnswer
        answer = self._answer = Answer(reader, bodiless)
        done = self._done = asyncio.get_running_loop().create_future()
        transport.write(request)
        try:
            await done
        except BaseException:
            self.close()
            raise
        finally:
            self._done, self._answer = None, _NO_ANSWER
        if answer.lasting and not self._surplus and self.usable:
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
        self._parser = HttpResponseParser(self)
        # As browsers do. What a server says ends at its own connection: nobody else reads it in another way.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def data_received(self, data: bytes) -> None:
        done, answer, parser = self._done, self._answer, self._parser
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
        self._transport = self._parser = None  # the parser knows the way back: a circle
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

    # The parser tells:

    def on_message_begin(self) -> None:
        self._surplus = self._answer.over

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.header(name, value)

    def on_headers_complete(self) -> None:
        parser: Any = self._parser
        self._answer.head(parser.get_status_code(), parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        self._answer.body(body)

    def on_message_complete(self) -> None:
        self._answer.end()
