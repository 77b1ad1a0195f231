"""Starts jobs when something is published on their channel: once, by the leader, not once per instance."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import NotLeader
from noonday.engine.elector import Elector
from noonday.engine.loop import Actor, Wish
from noonday.ports import Message, Receiver, Telemetry
from noonday.store import channels
from noonday.store.database import CommitUnknown, Database
from noonday.store.notices import JOBS

log = structlog.get_logger(__name__)

_WAIT = timedelta(milliseconds=500)  # for messages, before it looks up from them
_LOOK_AGAIN = 60.0  # seconds
_TOGETHER = 0.1  # seconds: what is told of jobs close together is looked at once
_AT_ONCE = float("-inf")
_MOST_MESSAGES = 500
_MOST_ROWS = 2_000  # in one transaction


class Triggers(Actor):
    """Hangs up by itself when it no longer leads, and what it still writes then is refused by the fence.

    A message is acted on at most once: it is lost when nobody leads or listens at that moment.
    """

    name = "triggers"

    def __init__(
        self, *, db: Database, clock: Clock, receiver: Receiver, telemetry: Telemetry, elector: Elector
    ) -> None:
        self._notices = db.subscribe(JOBS)
        super().__init__(clock=clock, wake=self._notices)
        self._db = db
        self._receiver = receiver
        self._telemetry = telemetry
        self._elector = elector
        self._seen = 0  # of the notices
        self._read_at = _AT_ONCE
        self._jobs: dict[str, int] = {}  # per channel that is followed
        self._waiting: deque[Message] = deque()

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._receiver.close()

    async def run_once(self) -> Wish:
        if not self._elector.leading:
            await self._hang_up()
            await self._elector.wait()
        try:
            if self._look_in() <= 0:
                await self._follow()
            if not self._jobs:
                return timedelta(seconds=max(self._look_in(), 0.0))
            if not self._waiting:
                self._waiting.extend(await self._receiver.take(_MOST_MESSAGES, _WAIT))
            while self._waiting:
                await self._start(self._batch())
        except NotLeader:
            await self._hang_up()
            raise
        except Exception:
            self._read_at = _AT_ONCE  # whatever it was, look at the channels anew
            raise
        return timedelta()

    def _look_in(self) -> float:
        """Seconds until it has to know the channels anew."""
        since = self.clock.monotonic() - self._read_at
        return (_LOOK_AGAIN if self._seen == self._notices.told else _TOGETHER) - since

    async def _follow(self) -> None:
        told = self._notices.told
        wanted = await self._db.read(channels.wanted)
        await self._receiver.follow(wanted.keys())
        if wanted.keys() != self._jobs.keys():
            log.info("listening for triggers", action="triggers.follow", channels=len(wanted))
        self._seen, self._jobs, self._read_at = told, wanted, self.clock.monotonic()

    async def _hang_up(self) -> None:
        self._waiting.clear()
        self._jobs = {}
        self._read_at = _AT_ONCE
        await self._receiver.close()

    def _batch(self) -> list[Message]:
        """So many as make a transaction of good size, at least one."""
        batch, rows = list[Message](), 0
        for message in self._waiting:
            rows += self._jobs.get(message.heard_as, 1)
            if batch and rows > _MOST_ROWS:
                break
            batch.append(message)
        return batch

    async def _start(self, batch: Sequence[Message]) -> None:
        """While the database is away they wait here, and the rest waits in Redis."""
        try:
            matched = await self._db.write(partial(self._written, batch))
        except CommitUnknown:
            log.warning(
                "triggers may be lost with the database's answer",
                action="triggers.unknown",
                messages=len(batch),
            )
            matched = [0] * len(batch)  # at most once, as everything on these channels
        for jobs in matched:
            self._waiting.popleft()
            self._telemetry.triggered("pubsub", jobs)

    def _written(self, batch: Sequence[Message], conn: Connection) -> list[int]:
        self._elector.fence(conn)
        return channels.start(conn, batch, self.clock.now())
