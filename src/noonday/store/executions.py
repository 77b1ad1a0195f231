"""Executions: planned, claimed, renewed, settled, cancelled; each verb a batch in one transaction."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from noonday.domain.execution import OPEN, Execution, ExecutionId
from noonday.store import dialects
from noonday.store.cancelling import cancel_of_job, request_cancel
from noonday.store.candidates import ClaimOrder, due_until, next_available_at
from noonday.store.claiming import Taken, claim, claim_and_look_ahead, claim_these
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.leases import expired, next_lease_end, renew, report
from noonday.store.planning import plan, plan_due
from noonday.store.reading import may_be_id
from noonday.store.settling import Ending, Ends, settle, settle_held
from noonday.store.tables import executions
from noonday.store.turnover import Ahead, FrontAhead, TheseAhead
from noonday.store.unplanning import unplan
from noonday.store.waiting import rearm_dependants, rearm_waiting, unpark

__all__ = [
    "Ahead",
    "ClaimOrder",
    "Ending",
    "Ends",
    "FrontAhead",
    "Taken",
    "TheseAhead",
    "cancel_of_job",
    "claim",
    "claim_and_look_ahead",
    "claim_these",
    "due_until",
    "ended",
    "expired",
    "get",
    "next_available_at",
    "next_lease_end",
    "plan",
    "plan_due",
    "rearm_dependants",
    "rearm_waiting",
    "renew",
    "report",
    "request_cancel",
    "settle",
    "settle_held",
    "unpark",
    "unplan",
]


def get(conn: Connection, execution_id: str) -> Execution | None:
    if not may_be_id(conn, execution_id):
        return None
    row = conn.execute(select(*COLUMNS).where(executions.c.id == execution_id)).first()
    return None if row is None else read_execution(row)


def ended(conn: Connection, ids: Collection[ExecutionId]) -> list[Execution]:
    """Those among them that are over, one way or another."""
    among = dialects.of(conn).among(executions.c.id, ids)
    over = executions.c.state.not_in([state.value for state in OPEN])
    return [read_execution(row) for row in conn.execute(select(*COLUMNS).where(among, over))]
