"""Executions as people and targets handle them: the history, cancelling, and what a remote run reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.errors import Gone
from noonday.control.jobs import NOBODY
from noonday.control.reporting import write_from_afar
from noonday.domain.errors import Conflict, NotAllowed, NotFound
from noonday.domain.execution import Attempt, Execution, ExecutionId, ExecutionState
from noonday.domain.job import Job
from noonday.domain.outcome import Completed, Failed
from noonday.ports import Claim, Silence, Telemetry
from noonday.store import audit, executions, glances, history, jobs
from noonday.store.around import Around, around
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.executions import Ending
from noonday.store.glances import Glance
from noonday.store.history import ExecutionFilter
from noonday.store.pages import Mark, Page
from noonday.telemetry.masking import masked

__all__ = ["Around", "CheckToken", "Executions", "Report", "found"]

T = TypeVar("T")
CheckToken = Callable[[ExecutionId, int, str], bool]
_OLD_ATTEMPTS = 100  # how far back a token is recognised as one of an attempt that is over


def _no_token_is_good(_: ExecutionId, __: int, ___: str) -> bool:
    return False


def _chance() -> float:
    return int.from_bytes(os.urandom(6), "big") / 2**48


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a remote run says of itself: with nothing in it, that it lives."""

    progress: float | None = None
    message: str | None = None
    output: str | None = None  # what it has written since


class Executions:
    """`check_token(execution, attempt, token)` knows the tokens that were handed to targets."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        check_token: CheckToken = _no_token_is_good,
        chance: Callable[[], float] = _chance,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._check_token = check_token
        self._chance = chance
        self._telemetry = telemetry or Silence()

    async def page(
        self,
        job: str | None = None,
        *,
        limit: int = 50,
        offset: int = 0,
        status: ExecutionState | None = None,
    ) -> Page[Execution]:
        """Newest first; of one job (by id or name) or of all."""

        return await self.find(ExecutionFilter(status=status), job=job, limit=limit, offset=offset)

    async def find(
        self,
        wanted: ExecutionFilter,
        *,
        job: str | None = None,
        limit: int = 50,
        offset: int = 0,
        after: Mark | None = None,
    ) -> Page[Execution]:
        """Newest first; of one job (by id or name) or of all."""

        def look(conn: Connection) -> Page[Execution]:
            one = wanted if job is None else replace(wanted, job_id=jobs.resolve(conn, job).id)
            return history.find(conn, one, limit, offset, after)

        return await self._db.read(look)

    async def glance(self, wanted: ExecutionFilter, *, limit: int = 50, after: Mark | None = None) -> Glance:
        """As `find`, for people: with the names of the jobs, counts to choose by, a stretch at a time."""
        return await self._db.read(lambda conn: glances.glance(conn, wanted, limit, after))

    async def get(self, execution_id: str) -> Execution:
        return await self._db.read(lambda conn: found(conn, execution_id))

    async def attempts(self, execution_id: str) -> Sequence[Attempt]:
        return await self._db.read(lambda conn: history.attempts(conn, found(conn, execution_id).id))

    async def around(self, execution: Execution, service: str | None = None) -> Around:
        """What lies around it; only of jobs of the service, where one is given."""
        return await self._db.read(lambda conn: around(conn, execution, service))

    async def cancel(self, execution_id: str, by: str | None = None) -> Execution:
        """What waits is cancelled at once; what runs is asked to stop."""

        def work(conn: Connection, now: datetime) -> Execution:
            before = found(conn, execution_id)
            if not before.state.open:
                raise Conflict(f"execution {before.id} is {before.state}: there is nothing to cancel")
            after = executions.request_cancel(conn, before.id, by or NOBODY, now)
            entry = AuditEntry(
                at=now,
                actor=by or NOBODY,
                action="cancel",
                kind="execution",
                subject_id=before.id,
                before={"state": before.state.value},
                after={"state": after.state.value, "job_id": before.job_id},
            )
            audit.record(conn, entry)
            return after

        return await self._write(work)

    async def report(self, execution_id: str, token: str, report: Report) -> bool:
        """A sign of life of a remote run; the answer is whether it is asked to stop."""

        def work(conn: Connection, now: datetime) -> tuple[Execution, bool]:
            execution = self._running(conn, execution_id, token)
            extend = _heartbeat(conn, execution) if execution.remote else None
            cancel = executions.report(
                conn, execution.id, execution.attempt, report.progress, report.message, now, extend
            )
            if report.output:
                write_from_afar(conn, execution, report.output, now)
            return execution, cancel

        execution, cancel = await self._write(work)
        if report.progress is not None or report.message is not None:
            self._telemetry.progressed(execution, report.progress, report.message)
        return cancel

    async def result(self, execution_id: str, token: str, outcome: Completed | Failed) -> bool:
        """How a remote run ended; whether it had been asked to stop."""

        def work(conn: Connection, now: datetime) -> tuple[Execution, Job | None, datetime]:
            execution = self._running(conn, execution_id, token)
            assert execution.lease_token is not None
            job = jobs.get(conn, execution.job_id)
            end = outcome if job is None else masked(outcome, job, execution)
            ending = Ending(execution_id=execution.id, token=execution.lease_token, outcome=end)
            if not executions.settle(conn, [ending], now, self._chance()):
                raise _over(execution)
            return execution, job, now

        execution, job, now = await self._write(work)
        if job is not None:
            took = now - (execution.started_at or now)
            self._telemetry.ended(Claim(job, execution), outcome, took.total_seconds())
        return execution.cancel_requested_at is not None

    async def _write(self, work: Callable[[Connection, datetime], T]) -> T:
        return await self._db.write(lambda conn: work(conn, self._clock.now()))

    def _running(self, conn: Connection, execution_id: str, token: str) -> Execution:
        """The execution, if the token is that of the attempt that runs now."""
        execution = found(conn, execution_id)
        newest = self._check_token(execution.id, execution.attempt, token)
        if newest and execution.state is ExecutionState.RUNNING:
            return execution
        older = range(max(1, execution.attempt - _OLD_ATTEMPTS), execution.attempt)
        if newest or any(self._check_token(execution.id, number, token) for number in older):
            raise _over(execution)
        raise NotAllowed("the callback token does not belong to this execution")


def _over(execution: Execution) -> Gone:
    return Gone(
        f"this attempt of execution {execution.id} is over and the execution is {execution.state}: "
        "nothing was recorded, stop the work"
    )


def found(conn: Connection, execution_id: str) -> Execution:
    """Raises NotFound."""
    try:
        one = executions.get(conn, str(UUID(execution_id)))
    except ValueError:
        one = None
    if one is None:
        raise NotFound(f"there is no execution {execution_id!r}")
    return one


def _heartbeat(conn: Connection, execution: Execution) -> timedelta | None:
    job = jobs.get(conn, execution.job_id)
    seconds = getattr(job.target, "heartbeat_seconds", None) if job else None
    return None if seconds is None else timedelta(seconds=seconds)
