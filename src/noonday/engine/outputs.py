"""Writes what attempts put out as they run: gathered without waiting, written together twice a second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.output import Flow, Piece
from noonday.engine.held import Held, ids
from noonday.engine.loop import Actor, Wish, first_line, nap
from noonday.ports import Claim
from noonday.store import events, outputs
from noonday.store.database import Database
from noonday.store.events import News
from noonday.store.jsontext import clean_text
from noonday.telemetry.masking import Veil, secrets_of

log = structlog.get_logger(__name__)

_GATHER: Final = 0.5  # seconds between two transactions, unless a run waits for its last words
_LAST_WORDS_WITHIN: Final = 2.0  # seconds
_BATCH: Final = 4 * 1024 * 1024  # characters in one transaction, more or less
_MOST_LATE: Final = 1000  # runs that are over and whose output could not be stored
_TELL_EVERY: Final = 1.0  # seconds between two events about the same attempt

Key = tuple[str, int]  # execution, attempt


@dataclass(slots=True, eq=False)
class _Stream:
    """What one attempt has written and the store does not have yet."""

    claim: Claim
    flow: Flow = field(default_factory=Flow)
    veil: Veil | None = None
    over: bool = False
    told: float = float("-inf")
    stored: asyncio.Event | None = None  # for the one that waits at its end

    @property
    def key(self) -> Key:
        return self.claim.execution.id, self.claim.execution.attempt

    def write(self, text: str) -> None:
        if self.veil is None:
            self.veil = Veil(secrets_of(self.claim.job, self.claim.execution))
        self.flow.add(self.veil.through(clean_text(text)))

    def end(self) -> None:
        self.over = True
        if self.veil is not None:
            self.flow.add(self.veil.rest())


class Outputs(Actor):
    """A run waits for nobody while it writes. Its end waits a moment, for what it said last."""

    name = "outputs"

    def __init__(self, *, db: Database, clock: Clock, tell: bool = True) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._tell = tell
        self._lock = threading.Lock()  # tasks write from threads of their own
        self._home = asyncio.get_running_loop()
        self._open: dict[Key, _Stream] = {}
        self._waiting: dict[Key, _Stream] = {}  # until all of it is stored
        self._hurry = asyncio.Event()
        self._began = float("-inf")

    def write(self, held: Held, text: str) -> None:
        """For one attempt; may be called from any thread, and is heard while the attempt is not silent."""
        held.wrote = True  # before the look whether it is silent: `close` does both in the other order
        with self._lock:
            if held.ended or held.silent:
                return
            key = _key(held)
            stream = self._open.get(key)
            if stream is None:  # most never write
                stream = self._open[key] = _Stream(held.claim)
            stream.write(text)
            if key in self._waiting or not stream.flow:
                return
            self._waiting[key] = stream
        with suppress(RuntimeError):  # the loop has closed: nobody writes any more
            self._home.call_soon_threadsafe(self.wake.set)

    @property
    def busy(self) -> bool:
        """Is somebody writing, or something not yet stored?"""
        return bool(self._open or self._waiting)

    def waits(self, held: Held) -> bool:
        """Is something that it wrote not yet stored?"""
        return held.wrote and _key(held) in self._waiting

    def close(self, held: Held) -> None:
        """The attempt is over: what it still says is not heard."""
        held.silent = True
        if not held.wrote:  # nor will it be heard from here on, so there is nothing to take the lock for
            return
        with self._lock:
            stream = self._open.pop(_key(held), None)
            if stream is None:
                return
            stream.end()
            if stream.flow:
                self._waiting[stream.key] = stream
                self.wake.set()

    async def last_words(self, held: Held) -> None:
        """Returns when all that a closed attempt wrote is stored, or when that takes too long."""
        stream = self._waiting.get(_key(held))
        if stream is None:
            return
        stream.stored = asyncio.Event()
        self._hurry.set()
        self.wake.set()
        try:
            async with asyncio.timeout(_LAST_WORDS_WITHIN):
                await stream.stored.wait()
        except TimeoutError:
            self._late(stream)

    def _late(self, stream: _Stream) -> None:
        """The end is told without its last words. They are stored when they can be, unless too many wait."""
        lost = len(self._waiting) > _MOST_LATE
        if lost:
            self._waiting.pop(stream.key, None)
        what = "the last output is lost" if lost else "the last output comes after the end"
        log.warning(what, action="outputs.late", **ids(stream.claim))

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._last_chance()

    async def _sleep(self, wish: Wish) -> None:
        await super()._sleep(wish)
        await nap(max(0.0, _GATHER - (self.clock.monotonic() - self._began)), self._hurry)

    async def _last_chance(self) -> None:
        """What was written while the instance was stopping."""
        if not self._waiting:
            return
        try:
            async with asyncio.timeout(_LAST_WORDS_WITHIN):
                while self._waiting:
                    await self.run_once()
        except Exception as exc:
            log.warning("the last output was lost", action="outputs.lost", error=first_line(exc))

    async def run_once(self) -> Wish:
        self._began = self.clock.monotonic()
        batch = self._take()
        if batch:
            telling = self._telling(batch)
            now = self.clock.now()
            try:
                await self._db.write(lambda conn: _write(conn, batch, telling, now))
            except BaseException:  # stored or not: the same piece twice is one
                with self._lock:
                    for stream, pieces in batch.items():
                        stream.flow.put_back(pieces)
                raise
            self._clear(batch)
        return None

    def _take(self) -> dict[_Stream, list[Piece]]:
        """What is written in one transaction."""
        batch: dict[_Stream, list[Piece]] = {}
        size = 0
        with self._lock:
            for key, stream in list(self._waiting.items()):
                if size > _BATCH:
                    break
                self._waiting[key] = self._waiting.pop(key)  # behind those that do not fit in
                batch[stream] = stream.flow.take()
                size += sum(len(piece.text) for piece in batch[stream])
        return batch

    def _telling(self, batch: Collection[_Stream]) -> list[_Stream]:
        """Those of which listeners are told."""
        now = self.clock.monotonic()
        telling = [one for one in batch if self._tell and (one.over or now - one.told >= _TELL_EVERY)]
        for stream in telling:
            stream.told = now
        return telling

    def _clear(self, stored: Collection[_Stream]) -> None:
        """Forget those of which all is stored, and come again for what came meanwhile or did not fit in."""
        with self._lock:
            for stream in stored:
                if not stream.flow:
                    self._waiting.pop(stream.key, None)
                    if stream.stored is not None:
                        stream.stored.set()
            if self._waiting:
                self.wake.set()


def _key(held: Held) -> Key:
    return held.claim.execution.id, held.claim.execution.attempt


def _write(
    conn: Connection, batch: Mapping[_Stream, list[Piece]], telling: Collection[_Stream], now: datetime
) -> None:
    outputs.append(conn, {stream.key: pieces for stream, pieces in batch.items()}, now)
    news = [
        News(
            at=now,
            kind="output.written",
            job_id=stream.claim.job.id,
            execution_id=stream.claim.execution.id,
            payload={"attempt": stream.claim.execution.attempt, "next": batch[stream][-1].end},
        )
        for stream in telling
    ]
    if news:
        events.append(conn, news)
