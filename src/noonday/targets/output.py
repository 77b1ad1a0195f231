"""What a process writes: the beginning and the end are kept, and a flood of it does not occupy the loop."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from typing import cast

from noonday.targets.bounds import KEPT_BYTES, clean_text

_BURST = 1024 * 1024
_PAUSE_SECONDS = 0.01


class HeadAndTail:
    """Keeps the beginning and the end of a stream; what lies between is counted and dropped."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._head_size = limit // 4
        self._tail_size = limit - self._head_size
        self._head = bytearray()
        self._tail = bytearray()
        self.received = 0

    def add(self, data: bytes) -> None:
        self.received += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]

    @property
    def dropped(self) -> int:
        return max(0, self.received - self._head_size - self._tail_size)

    def text(self) -> str:
        tail = bytes(self._tail[-self._tail_size :])
        if not self.dropped:
            return clean_text((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = bytes(self._head).decode("utf-8", "replace")
        return clean_text(f"{head}\n[… {self.dropped} bytes left out …]\n{tail.decode('utf-8', 'replace')}")


class Output(asyncio.Protocol):
    """Collects what a process writes; a flood is slowed down so that it does not occupy the loop."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` is given the text as it comes."""
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.kept = HeadAndTail()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._burst = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        self.kept.add(data)
        self._tell(self._decoder.decode(data))
        self._burst += len(data)
        if self._burst >= _BURST:
            self._burst = 0
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell(self._decoder.decode(b"", final=True))
        if not self.closed.done():
            self.closed.set_result(None)
