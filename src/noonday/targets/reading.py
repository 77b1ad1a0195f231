"""An answer as it is read: its beginning is kept, its bytes counted, and lines of output passed on."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from yarl import URL

from noonday.domain.outcome import Result
from noonday.targets.answers import NO_HEADERS, Answer, bare_result
from noonday.targets.config import TargetsConfig

_MAX_JSON: Final = 1024 * 1024
_LINES: Final = frozenset({"text/plain", "text/event-stream", "application/x-ndjson"})  # a service's output


class Reading:
    """What is known of the answer so far; a cancelled call keeps it."""

    __slots__ = (
        "_begun",
        "_chunks",
        "_clock",
        "_cut",
        "_decoder",
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
        self._begun = self._started  # when its head had come
        self._status: int | None = None  # none while its head has not come
        self._headers: Mapping[str, str] = NO_HEADERS
        self._cut = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._status, self._headers = status, headers
        self._begun = self._clock.monotonic()
        if self._tell is not None and _is_lines(headers.get("content-type", "")):
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

    def answer(self) -> Answer:
        assert self._status is not None
        return Answer(
            self._url,
            self._status,
            self._headers,
            b"".join(self._chunks),
            self._received,
            self._cut,
            first_byte_ms=round((self._begun - self._started) * 1000),
            total_ms=self._elapsed(),
        )

    def _elapsed(self) -> int:
        return round((self._clock.monotonic() - self._started) * 1000)

    def result(self) -> Result:
        if self._status is None:
            return Result(metadata={"timing_ms": {"total": self._elapsed()}})
        return bare_result(self.answer())


@lru_cache(maxsize=64)
def _is_lines(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in _LINES
