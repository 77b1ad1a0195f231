"""Puts due executions of version 2 on the road at their moment, and puts back what the road lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.ports import Parcel


@dataclass(frozen=True, slots=True)
class Promise:
    """A parcel that will be put on the road at its moment; the row says so already."""

    due_at: datetime
    parcel: Parcel


class Feeder(Actor):
    name = "feeder"

    def __init__(self, *, clock: Clock) -> None:
        super().__init__(clock=clock)

    @property
    def taking(self) -> bool:
        """May the planner promise? Not while the road is down or full."""
        return False

    def promise(self, promises: Iterable[Promise]) -> None:
        """What the planner has just committed with `enqueued_at` set."""

    async def run_once(self) -> Wish:
        return timedelta(minutes=1)
