"""Starts jobs when something is published on their channel: once, by the leader, not once per instance."""

from __future__ import annotations

from datetime import timedelta

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.ports import Receiver, Telemetry
from noonday.store.database import Database
from noonday.store.notices import JOBS


class Triggers(Actor):
    name = "triggers"

    def __init__(self, *, db: Database, clock: Clock, receiver: Receiver, telemetry: Telemetry) -> None:
        super().__init__(clock=clock, wake=db.subscribe(JOBS))

    async def run_once(self) -> Wish:
        return timedelta(minutes=1)
