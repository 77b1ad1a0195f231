"""Writes what attempts put out as they run: gathered without waiting, written together twice a second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.job import JobId
from noonday.domain.output import Flow, Piece
from noonday.engine.held import Held
from noonday.engine.loop import Actor, Wish, first_line
from noonday.store import events, outputs
from noonday.store.database import Database
from noonday.store.events import News
from noonday.store.jsontext import clean_text

log = structlog.get_logger(__name__)

_LAST_WORDS_WITHIN: Final = 2.0  # seconds
_BATCH: Final = 4 * 1024 * 1024  # characters in one transaction, more or less
_TELL_EVERY: Final = 1.0  # seconds between two events about the same attempt

Key = tuple[str, int]  # execution, attempt


@dataclass(slots=True)
class _Stream:
    job_id: JobId
    flow: Flow = field(default_factory=Flow)
    over: bool = False
    told: float = float("-inf")


class Outputs(Actor):
    """A run waits for nobody here, not even at its end: what it wrote last is stored a moment later."""

    name = "outputs"
    gap = 0.5

    def __init__(self, *, db: Database, clock: Clock, tell: bool = True) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._tell = tell
        self._lock = threading.Lock()  # tasks write from threads of their own
        self._streams: dict[Key, _Stream] = {}

    def writing(self, held: Held) -> Callable[[str], None]:
        """For one attempt; may be called from any thread."""
        execution = held.claim.execution
        key = (execution.id, execution.attempt)
        home = asyncio.get_running_loop()

        def write(text: str) -> None:
            text = clean_text(text)
            with self._lock:
                stream = self._streams.get(key)
                if stream is None:
                    if held.ended:
                        return
                    stream = self._streams[key] = _Stream(execution.job_id)
                if stream.over:
                    return
                knock = not stream.flow
                stream.flow.add(text)
            if knock:
                with suppress(RuntimeError):  # the loop has closed: nobody writes any more
                    home.call_soon_threadsafe(self.wake.set)

        return write

    @property
    def busy(self) -> bool:
        """Is somebody writing, or something not yet stored?"""
        return bool(self._streams)

    def close(self, held: Held) -> None:
        """The attempt is over: what it still says is not heard."""
        execution = held.claim.execution
        with self._lock:
            stream = self._streams.get((execution.id, execution.attempt))
            if stream is not None:
                stream.over = True
                self.wake.set()

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._last_words()

    async def _last_words(self) -> None:
        """What was written while the instance was stopping."""
        try:
            async with asyncio.timeout(_LAST_WORDS_WITHIN):
                await self.run_once()
        except Exception as exc:
            log.warning("the last output was lost", action="outputs.lost", error=first_line(exc))

    async def run_once(self) -> Wish:
        batch, telling = self._take()
        if batch:
            now = self.clock.now()
            try:
                await self._db.write(lambda conn: _write(conn, batch, telling, now))
            except Exception:
                with self._lock:
                    for key, pieces in batch.items():
                        self._streams[key].flow.put_back(pieces)
                raise
        self._clear()
        return None

    def _clear(self) -> None:
        """Forget those that are over, and come again at once for what did not fit in."""
        with self._lock:
            over = [key for key, stream in self._streams.items() if stream.over and not stream.flow]
            for key in over:
                del self._streams[key]
            if any(stream.flow for stream in self._streams.values()):
                self.wake.set()

    def _take(self) -> tuple[dict[Key, list[Piece]], list[tuple[Key, JobId]]]:
        """What is written in one transaction, and of which attempts listeners are told."""
        batch: dict[Key, list[Piece]] = {}
        telling: list[tuple[Key, JobId]] = []
        size, now = 0, self.clock.monotonic()
        with self._lock:
            for key, stream in self._streams.items():
                if not stream.flow or size > _BATCH:
                    continue
                batch[key] = stream.flow.take()
                size += sum(len(piece.text) for piece in batch[key])
                if self._tell and (stream.over or now - stream.told >= _TELL_EVERY):
                    stream.told = now
                    telling.append((key, stream.job_id))
        return batch, telling


def _write(
    conn: Connection, batch: Mapping[Key, list[Piece]], telling: list[tuple[Key, JobId]], now: datetime
) -> None:
    outputs.append(conn, batch, now)
    news = [
        News(
            at=now,
            kind="output.written",
            job_id=job_id,
            execution_id=key[0],
            payload={"attempt": key[1], "next": batch[key][-1].end},
        )
        for key, job_id in telling
    ]
    if news:
        events.append(conn, news)
