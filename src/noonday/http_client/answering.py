"""One answer on its way in: from the parser's calls to whoever reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from noonday.http_client.errors import BrokeOff, NotHttp
from noonday.http_client.unpacking import Unpacker, unpacker_of

LONGEST_SILENCE: Final = 64 * 1024  # bytes that are not of a body, all headers together among them
_SWITCHING: Final = 101


class Reader(Protocol):
    """Whoever wants an answer. It is told as the bytes come, and keeps of them what it likes."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The names of the headers are in lower case; of several with one name the first is given."""
        ...

    def add(self, chunk: bytes) -> bool:
        """False when that is enough."""
        ...


class Answer:
    """What is known of it so far."""

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
        "silence",
    )

    def __init__(self, reader: Reader, bodiless: bool) -> None:
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

    def header(self, name: bytes, value: bytes) -> None:
        if not self.begun:  # what comes behind the body is nobody's
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))

    def head(self, status: int, lasting: bool) -> None:
        if self.over:  # this is of another one, which nobody asked for
            return
        if status < 200:
            if status == _SWITCHING:
                raise NotHttp("it wants to speak another protocol")
            self._headers.clear()
            self._informal = True
            return
        self.begun = True
        self.lasting = lasting and not self._bodiless
        coding = self._headers.get("content-encoding")
        self._unpacker = unpacker_of(coding) if coding else None
        self._reader.begin(status, self._headers)
        self.over = self._bodiless

    def body(self, data: bytes) -> None:
        self.silence = 0
        if self.over:
            return
        pieces = (data,) if self._unpacker is None else self._unpacker.unpack(data)
        for piece in pieces:
            if not self._reader.add(piece):
                self.over, self.lasting = True, False
                return

    def end(self) -> None:
        if self._informal:
            self._informal = False
        elif not self.over:
            self._complete()

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
