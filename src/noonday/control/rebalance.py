"""How evenly the load is spread over the day, and spreading it better: a preview, and doing it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import Jobs
from noonday.control.remembering import Remembered
from noonday.domain.errors import Conflict, Invalid, NotFound, Problem, invalid
from noonday.domain.job import Job, JobId
from noonday.domain.load import DAY, SLOTS, Load
from noonday.domain.rebalance import Move, Proposal, Rules, distribution, propose
from noonday.domain.shifting import Held
from noonday.store import forecasting, jobs
from noonday.store.database import Database

__all__ = ["Distribution", "Done", "Rebalancing", "Refused", "Suggestion", "Wish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What may be moved: all jobs, or those named; and how."""

    jobs: tuple[str, ...] = ()
    slot_minutes: int = 15
    fixed_minutes: bool = False
    most: int = 100

    def rules(self) -> Rules:
        slot = timedelta(minutes=self.slot_minutes)
        return Rules(slot=slot, fixed_minutes=self.fixed_minutes, most=self.most)

    def __post_init__(self) -> None:
        if self.slot_minutes not in SLOTS:
            raise invalid("slot_minutes", self.slot_minutes, f"is not one of {', '.join(map(str, SLOTS))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    load: Load
    jobs: int
    partial: bool  # there are more jobs than one look takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    proposal: Proposal
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    move: Move
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of the suggestion; `after` is the load as it is now."""

    after: Load
    moved: tuple[Move, ...]
    refused: tuple[Refused, ...]
    suggestion: Suggestion


class Rebalancing:
    def __init__(self, db: Database, clock: Clock, all_jobs: Jobs) -> None:
        self._db = db
        self._clock = clock
        self._jobs = all_jobs
        self._days: Remembered[Distribution] = Remembered(db, clock)

    async def distribution(self, slot_minutes: int = 15, service: str | None = None) -> Distribution:
        """Of the coming day; remembered for a minute, or until a job changes."""
        slot = Wish(slot_minutes=slot_minutes).rules().slot
        return await self._days.get((service, slot), lambda: self._look(slot, service))

    async def _look(self, slot: timedelta, service: str | None) -> Distribution:
        now = self._clock.now()
        found, partial = await self._db.read(lambda conn: forecasting.timed_until(conn, now + DAY, service))
        load = await asyncio.to_thread(distribution, found, now, slot)
        return Distribution(load=load, jobs=len(found), partial=partial)

    async def preview(self, wish: Wish) -> Suggestion:
        """What would be moved; nothing is."""
        rules, now = wish.rules(), self._clock.now()

        def look(conn: Connection) -> tuple[list[Job], bool, dict[JobId, Held], set[JobId] | None]:
            staying = dict.fromkeys(forecasting.needed_by_others(conn), Held.LINKED)
            staying |= dict.fromkeys(forecasting.moved_since(conn, now - rules.cooldown), Held.MOVED)
            found, partial = forecasting.firing_until(conn, now + DAY)
            return found, partial, staying, _named(conn, wish.jobs)

        found, partial, staying, only = await self._db.read(look)
        proposal = await asyncio.to_thread(lambda: propose(found, now, rules, staying=staying, only=only))
        return Suggestion(proposal=proposal, partial=partial)

    async def apply(self, wish: Wish, by: str | None = None) -> Done:
        """Move what a preview names at this moment; each job in a transaction of its own."""
        suggestion = await self.preview(wish)
        moved: list[Move] = []
        refused: list[Refused] = []
        for move in suggestion.proposal.moves:
            try:
                await self._db.write(functools.partial(self._move, move, by))
                moved.append(move)
            except (Conflict, Invalid, NotFound) as exc:
                refused.append(Refused(move=move, why=str(exc)))
        now_spread = await self.distribution(wish.slot_minutes)
        return Done(
            after=now_spread.load,
            moved=tuple(moved),
            refused=tuple(refused),
            suggestion=suggestion,
        )

    def _move(self, move: Move, by: str | None, conn: Connection) -> None:
        now = self._clock.now()

        def edit(job: Job) -> Job:
            return replace(job, timing=move.timing)

        changed = self._jobs.changed
        changed(conn, now, move.job.id, edit, by, move.job.revision, action=forecasting.MOVED)


def _named(conn: Connection, references: Collection[str]) -> set[JobId] | None:
    if not references:
        return None
    meant = jobs.ids_of(conn, references)
    problems = [
        Problem(f"jobs[{place}]", f"there is no job {reference!r}")
        for place, reference in enumerate(references)
        if reference not in meant
    ]
    if problems:
        raise Invalid(*problems)
    return set(meant.values())
