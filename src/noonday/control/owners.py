"""Whose a job is, for callers that may touch the jobs of one service alone."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection

from noonday.domain.access import Caller
from noonday.domain.errors import NotFound
from noonday.store import owners
from noonday.store.database import Database

__all__ = ["Owners"]


class Owners:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def confine(self, caller: Caller, *, job: str | None = None, execution: str | None = None) -> None:
        """Raises NotFound, as for what does not exist, unless the job or execution is the caller's own."""
        if job is not None:
            await self._db.read(partial(_own_job, caller, job))
        if execution is not None:
            await self._db.read(partial(_own_execution, caller, execution))


def _own_job(caller: Caller, job: str, conn: Connection) -> None:
    if not caller.owns(owners.of_job(conn, job)):
        raise NotFound(f"there is no job {job!r}")


def _own_execution(caller: Caller, execution: str, conn: Connection) -> None:
    if not caller.owns(owners.of_execution(conn, execution)):
        raise NotFound(f"there is no execution {execution!r}")
