"""The leader's lease as a row: the twin for where there is no Redis, or none that answers."""

from __future__ import annotations

import os
import socket
import threading
from datetime import timedelta
from functools import partial
from typing import Protocol
from weakref import WeakSet

from noonday.clock import Clock
from noonday.ports import Leader
from noonday.store import leadership
from noonday.store.database import Database
from noonday.store.leadership import Candidate, Incumbent, nobody_died


class DatabaseLeadership:
    name = "database"

    def __init__(self, db: Database, clock: Clock, *, key: str, ttl: timedelta, holder: str) -> None:
        self.key = key
        self.ttl = ttl
        self.holder = holder
        self._db = db
        self._clock = clock
        # All processes on one SQLite file are on one machine, and can see whether the others live.
        self._died = _process_died if db.dialect == "sqlite" else nobody_died
        lives_here(self)

    async def campaign(self) -> int | None:
        return await self._db.write(
            partial(leadership.take_term, me=self._me(), now=self._clock.now(), died=self._died)
        )

    async def renew(self, term: int) -> bool:
        return await self._db.write(
            partial(leadership.extend, me=self._me(), term=term, now=self._clock.now())
        )

    async def resign(self, term: int) -> None:
        await self._db.write(partial(leadership.give_up, name=self.key, holder=self.holder, term=term))

    async def leader(self) -> Leader | None:
        found = await self._db.read(partial(leadership.look, name=self.key, now=self._clock.now()))
        if found is None or found.holder is None or found.left <= timedelta():
            return None
        return Leader(holder=found.holder, term=found.term, left=found.left)

    def _me(self) -> Candidate:
        return candidate(self.key, self.holder, self.ttl)


def candidate(key: str, holder: str, ttl: timedelta) -> Candidate:
    return Candidate(name=key, holder=holder, host=socket.gethostname(), pid=os.getpid(), ttl=ttl)


class Holding(Protocol):
    holder: str


_here: WeakSet[Holding] = WeakSet()
_door = threading.Lock()  # made in the loop, looked for in a store thread


def lives_here(one: Holding) -> None:
    """So that nobody in this process takes it for one of a former process with the same number."""
    with _door:
        _here.add(one)


def _process_died(incumbent: Incumbent) -> bool:
    """Is the holder's process gone? Its number may be ours by now, as the first in a container always is."""
    if incumbent.host != socket.gethostname() or incumbent.pid <= 0:
        return False
    if incumbent.pid == os.getpid():
        with _door:
            return all(one.holder != incumbent.holder for one in _here)
    try:
        os.kill(incumbent.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it lives and is somebody else's
    return False
