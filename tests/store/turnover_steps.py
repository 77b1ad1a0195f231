"""A claim that takes ends along, made in both ways: behind the ends, and while these are written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from noonday.domain.execution import Execution, ExecutionId
from noonday.domain.job import Job
from noonday.domain.outcome import Outcome
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.claiming import Taken
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending, Ends, FrontAhead, TheseAhead
from tests.factories import LEASE, NOON, a_job
from tests.store.feeding_steps import ALLOW
from tests.store.store_steps import (
    MINUTE,
    OK,
    SECOND,
    add,
    claim,
    ending,
    everything,
    look,
    plan,
    runs_of,
    sql,
)

NOW = NOON + MINUTE
MANY = 100


def told(claimed: Claim, outcome: Outcome = OK, place: int = 0) -> Ending:
    """As whoever ran it tells."""
    began = NOON + place * SECOND
    return replace(ending(claimed, outcome), claim=claimed, started_at=began, ended_at=began + SECOND)


def an_order(limit: int = MANY, now: datetime = NOW, **changes: Any) -> ClaimOrder:
    return ClaimOrder(instance_id="instance-2", limit=limit, now=now, lease=LEASE, **changes)


@dataclass
class Turnover:
    """What came of it."""

    ends: Ends
    claims: list[Claim]
    next_at: datetime | None
    ahead: bool  # were the claims worked out beside the ends?


@dataclass(frozen=True)
class Way:
    ahead: bool
    make: type[FrontAhead] = FrontAhead

    def turn(self, db: Database, endings: Sequence[Ending], order: ClaimOrder | None = None) -> Turnover:
        asked = order or an_order()

        def both(conn: Connection) -> Turnover:
            if not self.ahead:
                ends = executions.settle_held(conn, endings, asked.now, 0.5, wait=False)
                return Turnover(ends, *executions.claim_and_look_ahead(conn, asked), False)
            beside = self.make(conn, asked)
            ends = executions.settle_held(conn, endings, asked.now, 0.5, wait=False, beside=beside)
            if (made := beside.claims()) is not None:
                return Turnover(ends, *made, True)
            return Turnover(ends, *executions.claim_and_look_ahead(conn, asked), False)

        return db.write_now(both)


BEHIND, AHEAD = Way(ahead=False), Way(ahead=True)


def turn_these(
    db: Database, endings: Sequence[Ending], ids: Collection[ExecutionId], *, ahead: bool
) -> tuple[Taken, bool]:
    """The same of these, by the streams' road; and were they worked out beside the ends?"""
    order = an_order(limit=len(ids))

    def both(conn: Connection) -> tuple[Taken, bool]:
        if not ahead:
            executions.settle_held(conn, endings, order.now, 0.5, wait=False)
            return executions.claim_these(conn, order, ids), False
        beside = TheseAhead(conn, order, ids)
        executions.settle_held(conn, endings, order.now, 0.5, wait=False, beside=beside)
        made = beside.claims()
        return (executions.claim_these(conn, order, ids), False) if made is None else (made, True)

    return db.write_now(both)


@dataclass
class World:
    """Jobs with runs, those that are claimed first, and how they end."""

    jobs: list[Job]
    runs: list[Execution]
    outcomes: list[Outcome]
    limit: int = 100
    first: int | None = None  # claimed; by default as many as end
    before: Callable[[Database], object] = lambda _: None  # while the first ones run

    def claimed(self, db: Database) -> list[Claim]:
        for job in self.jobs:
            add(db, job)
        plan(db, *self.runs)
        return claim(db, limit=self.first or len(self.outcomes))

    def played(self, db: Database, way: Way) -> tuple[dict[str, Any], bool]:
        claims = self.claimed(db)
        self.before(db)
        ended = zip(claims, self.outcomes, strict=False)
        endings = [told(*each, place) for place, each in enumerate(ended)]
        turned = way.turn(db, endings, an_order(self.limit))
        ids = {one.execution.id for one in turned.claims}
        assert {run.id for run in _running(db, "instance-2")} == ids
        kept = everything(db, self.jobs)
        return kept | {"settled": len(turned.ends.settled), "next": turned.next_at}, turned.ahead


def _running(db: Database, instance: str) -> list[Execution]:
    rows = sql(db, f"SELECT id FROM executions WHERE state = 'running' AND instance_id = '{instance}'")
    return [look(db, ExecutionId(str(row["id"]))) for row in rows]


def of_one_job(**more: Any) -> World:
    job = a_job(overlapping=ALLOW)
    return World([job], runs_of(job, 6), [OK, OK, OK], **more)
