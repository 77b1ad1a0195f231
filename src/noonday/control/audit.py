"""The audit trail as people read it: who changed what, how a job was, and back to that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from noonday.control.jobs import Jobs
from noonday.control.revisions import as_it_was, gone_back
from noonday.domain.errors import NotFound
from noonday.domain.job import Job
from noonday.store import audit, jobs
from noonday.store.audit import AuditEntry, AuditFilter
from noonday.store.database import Database
from noonday.store.pages import Mark, Page

__all__ = ["Audit", "Revert", "Revision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A job as it was, and what made it so, where that is known."""

    job: Job
    current: int  # the revision of today
    made: AuditEntry | None


class Revert:
    """A verb for `Jobs.do` and `Jobs.rehearse`; then `kept_secrets` names those that stayed as they are."""

    def __init__(self, control: Jobs, job: str, to: int, by: str | None, revision: int | None = None) -> None:
        self.kept_secrets: tuple[str, ...] = ()
        self._control = control
        self._job = job
        self._to = to
        self._by = by
        self._revision = revision

    def __call__(self, conn: Connection, now: datetime) -> Job:
        def edit(job: Job) -> Job:
            later = audit.changes_since(conn, job.id, self._to)
            old, self.kept_secrets = gone_back(job, later, self._to)
            return old

        return self._control.changed(conn, now, self._job, edit, self._by, self._revision, action="revert")


class Audit:
    def __init__(self, db: Database, control: Jobs) -> None:
        self._db = db
        self._control = control

    async def find(
        self, wanted: AuditFilter, *, limit: int = 50, offset: int = 0, after: Mark | None = None
    ) -> Page[AuditEntry]:
        """Newest first."""
        return await self._db.read(
            partial(audit.find, wanted=wanted, limit=limit, offset=offset, after=after)
        )

    async def subject(self, id_or_name: str) -> str:
        """The id of a job that is there, or was once."""

        def look(conn: Connection) -> str:
            try:
                return jobs.resolve(conn, id_or_name).id
            except NotFound:
                if not _is_id(id_or_name):
                    raise
                return id_or_name.lower()

        return await self._db.read(look)

    async def revision(self, id_or_name: str, number: int) -> Revision:
        def look(conn: Connection) -> Revision:
            job = jobs.resolve(conn, id_or_name)
            later = audit.changes_since(conn, job.id, number)
            made = audit.change_to(conn, job.id, number)
            was = as_it_was(job, later, number)
            return Revision(job=was, current=job.revision, made=made)

        return await self._db.read(look)

    def revert(self, job: str, to: int, by: str | None, revision: int | None = None) -> Revert:
        """Back to what people had defined in that revision; as a new one, so that nothing is forgotten."""
        return Revert(self._control, job, to, by, revision)


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
