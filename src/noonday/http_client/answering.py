"""The answers of a connection on their way in: from the parser's calls to whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, cast

from httptools import HttpResponseParser

from noonday.http_client.errors import BrokeOff, NotHttp
from noonday.http_client.unpacking import Unpacker, unpacker_of

LONGEST_SILENCE: Final = 64 * 1024  # bytes that are not of a body, all headers together among them
_SWITCHING: Final = 101
_USUAL: Final = {
    spelled.encode(): name
    for name in ("connection", "content-length", "content-type", "date", "keep-alive", "server", "vary")
    for spelled in (name, name.title())
}


class Reader(Protocol):
    """Whoever wants an answer. It is told as the bytes come, and keeps of them what it likes."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The names of the headers are in lower case; of several with one name the first is given."""
        ...

    def add(self, chunk: bytes) -> bool:
        """False when that is enough."""
        ...


_NOBODY: Final = cast(Reader, None)


class Answer:
    """What is known so far of the answer that is awaited; one object serves all answers of a connection.

    It and its parser know each other, until somebody lets go of the parser.
    """

    __slots__ = (
        "_bodiless",
        "_headers",
        "_informal",
        "_reader",
        "_unpacker",
        "begun",
        "came",
        "lasting",
        "over",
        "parser",
        "silence",
        "surplus",
    )

    def __init__(self) -> None:
        self.parser: HttpResponseParser | None = HttpResponseParser(self)
        # As browsers do. What a server says ends at its own connection: nobody else reads it in another way.
        self.parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.surplus = False  # more came than was asked for
        self.expect(_NOBODY, bodiless=True)

    def expect(self, reader: Reader, bodiless: bool) -> None:
        """The next one, for this reader."""
        self._reader = reader
        self._bodiless = bodiless  # whatever its head says
        self._headers: dict[str, str] = {}
        self._informal = False  # it is one that another one follows
        self._unpacker: Unpacker | None = None
        self.came = False  # a part of it
        self.silence = 0  # bytes since the last that was of its body
        self.begun = False  # its head is whole
        self.lasting = False  # its connection outlives it
        self.over = False

    def forget(self) -> None:
        """Lets go of whoever read it, and of what was read."""
        self._reader, self._headers, self._unpacker = _NOBODY, {}, None

    # The parser tells:

    def on_message_begin(self) -> None:
        self.surplus = self.over

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.begun:  # what comes behind the body is nobody's
            known = _USUAL.get(name) or name.decode("latin-1").lower()
            self._headers.setdefault(known, value.decode("utf-8", "replace"))

    def on_headers_complete(self) -> None:
        if self.over:  # this is of another one, which nobody asked for
            return
        parser = self.parser
        assert parser is not None, "it is the one who tells"
        status = parser.get_status_code()
        if status < 200:
            if status == _SWITCHING:
                raise NotHttp("it wants to speak another protocol")
            self._headers.clear()
            self._informal = True
            return
        self.begun = True
        self.lasting = parser.should_keep_alive() and not self._bodiless
        coding = self._headers.get("content-encoding")
        if coding:
            self._unpacker = unpacker_of(coding)
        self._reader.begin(status, self._headers)
        self.over = self._bodiless

    def on_body(self, data: bytes) -> None:
        self.silence = 0
        if self.over:
            return
        pieces = (data,) if self._unpacker is None else self._unpacker.unpack(data)
        for piece in pieces:
            if not self._reader.add(piece):
                self.over, self.lasting = True, False
                return

    def on_message_complete(self) -> None:
        if self._informal:
            self._informal = False
        elif not self.over:
            self._complete()

    # The connection tells:

    def closed(self) -> None:
        """The connection is gone. An answer that tells no length ends like this. Raises BrokeOff."""
        if not self.begun or not self._until_closed:
            raise BrokeOff
        self._complete()

    @property
    def _until_closed(self) -> bool:
        return "content-length" not in self._headers and "transfer-encoding" not in self._headers

    def _complete(self) -> None:
        if self._unpacker is not None and not self._unpacker.whole:
            raise BrokeOff
        self.over = True
