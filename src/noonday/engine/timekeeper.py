"""Keeps this instance's clock on the database's time, so that all instances agree what time it is."""

from __future__ import annotations

from datetime import timedelta

from noonday.clock import SyncedClock
from noonday.engine.loop import Actor, Wish
from noonday.store.database import Database


class Timekeeper(Actor):
    name = "timekeeper"

    def __init__(self, *, db: Database, clock: SyncedClock) -> None:
        super().__init__(clock=clock)
        self._db = db

    async def run_once(self) -> Wish:
        return timedelta(seconds=10)
