"""Control, with a clock that stands still until a test moves it and planning that happens when asked."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from noonday.control.executions import Executions
from noonday.control.jobs import Jobs
from noonday.domain.execution import Execution, ExecutionId
from noonday.domain.job import Job
from noonday.domain.outcome import Outcome
from noonday.domain.planning import Facts, plan
from noonday.store import audit, executions, history, jobs
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from tests.factories import NOON, a_job


class StillClock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        raise AssertionError("nothing sleeps here")


class Desk:
    """Control, and the parts of the engine that a test needs to see what control did."""

    def __init__(self, db: Database) -> None:
        self.db, self.clock = db, StillClock()
        self.jobs = Jobs(db, self.clock)
        self.executions = Executions(db, self.clock, check_token=_check_token, chance=lambda: 0.0)

    async def new(self, **changes: Any) -> Job:
        return await self.jobs.create(a_job(**changes), "alice")

    def advance(self, **span: float) -> datetime:
        self.clock.at += timedelta(**span)
        return self.clock.at

    async def plan(self, **lookahead: float) -> None:
        """What the planner does in one pass."""
        now, ahead = self.clock.now(), timedelta(**lookahead)

        def work(conn: Connection) -> None:
            due = jobs.due(conn, now + ahead, 100)
            plans = [(one, plan(one.job, Facts(lookahead=ahead), now)) for one in due]
            executions.plan_due(conn, plans, now)

        await self.db.write(work)

    async def claim(self) -> list[Execution]:
        order = ClaimOrder(
            instance_id="worker-1",
            limit=10,
            now=self.clock.now(),
            lease=timedelta(seconds=30),
            ageing=timedelta(minutes=5),
        )
        return [one.execution for one in await self.db.write(lambda conn: executions.claim(conn, order))]

    async def settle(self, execution: Execution, outcome: Outcome) -> None:
        assert execution.lease_token
        ending = Ending(execution_id=execution.id, token=execution.lease_token, outcome=outcome)
        await self.db.write(lambda conn: executions.settle(conn, [ending], self.clock.now(), 0.0))

    async def history(self, job: Job) -> list[Execution]:
        """Oldest first."""
        page = await self.db.read(lambda conn: history.page(conn, job.id, 100, 0))
        return list(reversed(page.items))

    async def audit(self, subject: str) -> list[AuditEntry]:
        page = await self.db.read(lambda conn: audit.page(conn, subject))
        return list(reversed(page.items))


def token_of(execution_id: str, attempt: int) -> str:
    return f"token-{execution_id}-{attempt}"


def _check_token(execution_id: ExecutionId, attempt: int, token: str) -> bool:
    return token == token_of(execution_id, attempt)
