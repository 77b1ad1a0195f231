"""Everything at a glance: how the scheduler fares, what runs, what fails, what was due and what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.instances import Instances, Roster
from noonday.control.remembering import Worth
from noonday.domain.breaker import BreakerState
from noonday.domain.execution import ExecutionState
from noonday.domain.load import first_minute
from noonday.domain.outlook import outlook
from noonday.store import breakers, overview, pulse
from noonday.store.database import Database
from noonday.store.forecasting import state_of
from noonday.store.instances import RUNNING
from noonday.store.overview import LATE_AFTER, Failing, Going, JobFigures, Next, RunFigures
from noonday.store.tallies import SLOT, Counted, Width, counted

__all__ = ["LATE_AFTER", "SLOT", "Concern", "Glance", "Overview", "Pulse", "PulseSlot", "concerns"]

EACH_WAY: Final = timedelta(hours=6)
_SHOWN: Final = 6  # rows of each short list
_CHEAP: Final = 0.25  # seconds that a look at every job may take each time


class Concern(StrEnum):
    """What a person should look at, the gravest first."""

    NO_INSTANCE = "no instance"
    NO_LEADER = "no leader"
    NO_WORKER = "no worker"
    SILENT = "silent"
    LATE = "late"
    FAILING = "failing"
    BREAKER = "breaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    roster: Roster
    jobs: JobFigures
    runs: RunFigures
    breakers: Mapping[BreakerState, int]
    parked: int  # executions that wait for a breaker
    going: tuple[Going, ...] = ()
    failing: tuple[Failing, ...] = ()
    coming: tuple[Next, ...] = ()

    @property
    def alive(self) -> int:
        return sum(peer.alive for peer in self.roster.peers)

    @property
    def silent(self) -> int:
        return len(self.roster.peers) - self.alive

    @property
    def slots(self) -> int:
        """Of all workers that take work."""
        return sum(peer.instance.slots for peer in self.roster.peers if peer.state == RUNNING)

    @property
    def busy(self) -> int:
        return sum(peer.instance.busy for peer in self.roster.peers if peer.state == RUNNING)

    @property
    def held_back(self) -> int:
        """Domains whose breaker lets no calls pass."""
        return sum(count for state, count in self.breakers.items() if state is not BreakerState.CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseSlot:
    """Ten minutes: what became of what was due in them, and how many runs will start in what is left."""

    at: datetime
    ended: Mapping[ExecutionState, int] = field(default_factory=dict)
    expected: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    now: datetime
    slots: tuple[PulseSlot, ...]
    estimated: bool  # what will come is told by some of the jobs


class Overview:
    def __init__(self, db: Database, clock: Clock, instances: Instances) -> None:
        self._db = db
        self._clock = clock
        self._instances = instances
        self._ahead: Worth[_Expected] = Worth(clock)
        self._every: Worth[_Every] = Worth(clock, _CHEAP)

    async def glance(self, service: str | None = None) -> Glance:
        """Of all jobs, or of those of one service; instances and breakers are everybody's."""
        now = self._clock.now()
        roster = await self._instances.roster()
        every = await self._of_every_job(now, service)

        def look(conn: Connection) -> Glance:
            return Glance(
                roster=roster,
                jobs=every.figures,
                runs=overview.run_figures(conn, now, service),
                breakers=overview.breakers_by_state(conn),
                parked=breakers.parked(conn),
                going=overview.going(conn, _SHOWN, service),
                failing=every.failing,
                coming=overview.coming(conn, now, _SHOWN, service),
            )

        return await self._db.read(look)

    async def _of_every_job(self, now: datetime, service: str | None) -> _Every:
        """What no index tells; kept for a while, if it costs much and nobody changes a job."""

        async def look() -> _Every:
            figures, failing = await asyncio.gather(
                self._db.read(lambda conn: overview.job_figures(conn, now, service)),
                self._db.read(lambda conn: overview.failing(conn, _SHOWN, service)),
            )
            return _Every(figures=figures, failing=failing)

        if service is not None:
            return await look()
        return await self._every.get(await self._db.read(state_of), look)

    async def lanes(self, service: str | None = None) -> RunFigures:
        """How much waits in each lane, and since when."""
        now = self._clock.now()
        return await self._db.read(lambda conn: overview.run_figures(conn, now, service))

    async def pulse(self, service: str | None = None) -> Pulse:
        """Six hours back and six ahead, in slots of ten minutes."""
        now = self._clock.now()
        here = first_minute(now, SLOT)
        since, until = here - EACH_WAY, here + EACH_WAY
        found = await self._db.read(lambda conn: counted(conn, since, until, Width.SLOT, service))
        expected = await self._expected(here, until, service)
        return Pulse(
            now=now,
            slots=tuple(_slots(since, found, expected.starts)),
            estimated=expected.estimated,
        )

    async def _expected(self, here: datetime, until: datetime, service: str | None) -> _Expected:
        if service is not None:
            return await self._look_ahead(here, until, service)
        return await self._ahead.get(here, lambda: self._look_ahead(here, until, None))

    async def _look_ahead(self, here: datetime, until: datetime, service: str | None) -> _Expected:
        ahead = await self._db.read(lambda conn: pulse.ahead(conn, until, service))
        starts = await asyncio.to_thread(outlook, ahead.jobs, here, SLOT, (until - here) // SLOT)
        return _Expected(starts=[one * ahead.weight for one in starts], estimated=ahead.weight > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    starts: list[float] = field(default_factory=list)
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Every:
    figures: JobFigures
    failing: tuple[Failing, ...]


def concerns(glance: Glance) -> tuple[Concern, ...]:
    """What is wrong, the gravest first; nothing if all is well."""
    peers = glance.roster.peers
    works = [peer for peer in peers if peer.alive and peer.instance.works]
    wrong = {
        Concern.NO_INSTANCE: not glance.alive,
        Concern.NO_LEADER: bool(glance.alive) and glance.roster.leader is None,
        Concern.NO_WORKER: bool(glance.alive) and not any(peer.state == RUNNING for peer in works),
        Concern.SILENT: glance.silent > 0,
        Concern.LATE: glance.runs.late > 0,
        Concern.FAILING: glance.jobs.failing > 0,
        Concern.BREAKER: glance.held_back > 0,
    }
    return tuple(concern for concern, holds in wrong.items() if holds)


def _slots(since: datetime, found: Mapping[datetime, Counted], expected: list[float]) -> Iterator[PulseSlot]:
    before = EACH_WAY // SLOT
    for place in range(before + len(expected)):
        at = since + SLOT * place
        ahead = expected[place - before] if place >= before else 0.0
        yield PulseSlot(at=at, ended=found[at].states if at in found else {}, expected=ahead)
