"""Jobs as people handle them. Each verb is one transaction: the change, what follows, and its audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control import cursor, dependencies
from noonday.control.errors import Outdated
from noonday.control.forcing import pending, refuse_overlap
from noonday.control.recording import NOBODY, entry
from noonday.control.rehearsal import Rehearsal, rehearse
from noonday.control.skipping import pass_over_next
from noonday.control.snapshots import difference, snapshot, snapshots
from noonday.domain.errors import Invalid, MoveRefused, Problem
from noonday.domain.execution import Execution, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState
from noonday.domain.lifecycle import move, resting_state
from noonday.domain.occurrences import check
from noonday.store import audit, engine_versions, executions, jobs, records
from noonday.store.database import Database
from noonday.store.facts import NOTHING_OPEN, OpenWork, open_work_of
from noonday.store.jobs import Advance, JobFilter
from noonday.store.notices import WORK, tell
from noonday.store.pages import Mark, Page

__all__ = ["NOBODY", "Begun", "Edit", "Jobs", "Verb", "Vet"]

T = TypeVar("T")
Edit = Callable[[Job], Job]
Vet = Callable[[Job], None]
Verb = Callable[[Connection, datetime], Job]  # within a transaction of the caller's

_TICK = timedelta(microseconds=1)
_BUSY = frozenset({JobState.RUNNING, JobState.PENDING})
_HINTS = {
    JobState.RUNNING: "wait for its run to end, cancel that run, or disable the schedule",
    JobState.PENDING: "a run of it is about to start",
}


@dataclass(frozen=True, slots=True)
class Begun:
    """A new job, and the instants that it is too late for."""

    job: Job
    skipped: Sequence[Execution]


def _anything_goes(_: Job) -> None:
    pass


class Jobs:
    """`vet` refuses with Invalid what may not be, beyond the schedule: targets that may not be called."""

    def __init__(self, db: Database, clock: Clock, *, vet: Vet = _anything_goes) -> None:
        self._db = db
        self._clock = clock
        self._vet = vet

    async def get(self, id_or_name: str) -> Job:
        return await self._db.read(lambda conn: jobs.resolve(conn, id_or_name))

    async def find(
        self,
        wanted: JobFilter,
        *,
        limit: int = 50,
        offset: int = 0,
        order: str = "-created_at",
        after: Mark | None = None,
    ) -> Page[Job]:
        return await self._db.read(lambda conn: jobs.find(conn, wanted, limit, offset, order, after))

    async def do(self, verb: Verb) -> Job:
        """One of the verbs below that work within a transaction, in one of its own."""
        return await self._write(verb)

    async def rehearse(self, verb: Verb, id_or_name: str | None = None) -> Rehearsal:
        """What a verb would do to the job of that name, or to a new one; nothing of it is kept."""
        return await rehearse(self._db, lambda conn: verb(conn, self._clock.now()), id_or_name)

    async def create(self, job: Job, by: str | None = None) -> Job:
        return await self._write(lambda conn, now: self.created(conn, now, job, by))

    def created(self, conn: Connection, now: datetime, job: Job, by: str | None) -> Job:
        """As `create`, within a transaction of the caller's."""
        new = self.begun(now, engine_versions.of_its_time(conn, dependencies.resolved(conn, job)))
        jobs.add(conn, new.job)
        self._remember(conn, now, [new], by)
        return new.job

    def begun(self, now: datetime, job: Job) -> Begun:
        """A job as it will be created: armed; refuses one that may not be. Its parents are known to exist."""
        self._check(job)
        started, skipped = cursor.start(job, now)
        return Begun(started.altered(state=_at_rest(started)), skipped)

    def create_all(self, conn: Connection, now: datetime, new: Sequence[Begun], by: str | None) -> None:
        """As `created`, of many at once: Conflict says no more than that one of the names is taken."""
        jobs.add_many(conn, [one.job for one in new])
        self._remember(conn, now, new, by)

    def _remember(self, conn: Connection, now: datetime, new: Sequence[Begun], by: str | None) -> None:
        executions.plan(conn, [skip for one in new for skip in one.skipped])
        shown = snapshots(one.job for one in new)
        made = [entry(now, by, "create", one.job, None, after) for one, after in zip(new, shown, strict=True)]
        audit.record_many(conn, made)

    async def change(
        self, id_or_name: str, edit: Edit, by: str | None = None, revision: int | None = None
    ) -> Job:
        """Save what `edit` makes of the job; with a `revision` only if the job still has it."""
        return await self._write(lambda conn, now: self.changed(conn, now, id_or_name, edit, by, revision))

    def changed(
        self,
        conn: Connection,
        now: datetime,
        id_or_name: str,
        edit: Edit,
        by: str | None,
        revision: int | None = None,
        *,
        action: str = "update",
    ) -> Job:
        """As `change`, within a transaction of the caller's."""
        old = _locked(conn, id_or_name, now, revision)
        new = engine_versions.of_its_time(conn, edit(old))
        if new == old:
            return old
        self._check(new)
        if (new.depends_on, new.on_success_of) != (old.depends_on, old.on_success_of):
            new = dependencies.resolved(conn, new)
        if new.scheduler_version != old.scheduler_version:
            tell(conn, WORK)  # what waits of it takes the other road now
        return self._saved(conn, old, _scheduled_anew(conn, old, new, now), now, by, action)

    async def enable(self, id_or_name: str, by: str | None = None) -> Job:
        return await self._write(lambda conn, now: self.enabled(conn, now, id_or_name, by))

    def enabled(
        self, conn: Connection, now: datetime, id_or_name: str, by: str | None, revision: int | None = None
    ) -> Job:
        """As `enable`, within a transaction of the caller's."""
        return self.changed(conn, now, id_or_name, lambda job: replace(job, enabled=True), by, revision)

    async def disable(self, id_or_name: str, by: str | None = None) -> Job:
        return await self._write(lambda conn, now: self.disabled(conn, now, id_or_name, by))

    def disabled(
        self, conn: Connection, now: datetime, id_or_name: str, by: str | None, revision: int | None = None
    ) -> Job:
        """As `disable`, within a transaction of the caller's."""
        return self.changed(conn, now, id_or_name, lambda job: replace(job, enabled=False), by, revision)

    async def pause(
        self,
        id_or_name: str,
        by: str | None = None,
        revision: int | None = None,
        *,
        until: datetime | None = None,
    ) -> Job:
        """Hold its schedule, `until` then or until somebody resumes it; the end of a pause may be changed."""
        return await self._write(
            lambda conn, now: self.paused(conn, now, id_or_name, by, revision, until=until)
        )

    def paused(
        self,
        conn: Connection,
        now: datetime,
        id_or_name: str,
        by: str | None,
        revision: int | None = None,
        *,
        until: datetime | None = None,
    ) -> Job:
        """As `pause`, within a transaction of the caller's."""
        if until is not None and until <= now:
            raise Invalid(Problem("until", f"{until.isoformat()} has passed"))
        old = _locked(conn, id_or_name, now, revision)
        if old.paused and old.state is not JobState.CANCELLED and until != old.paused_until:
            return self._saved(conn, old, replace(old, paused_until=until), now, by, "pause")
        state = move(old.state, JobState.PAUSED, _HINTS.get(old.state, ""))
        check(old.timing)
        held = old if not old.enabled else cursor.hold(conn, old, now, SkipReason.PAUSED)
        new = replace(held, state=state, paused=True, paused_until=until)
        return self._saved(conn, old, new, now, by, "pause")

    async def resume(
        self,
        id_or_name: str,
        by: str | None = None,
        revision: int | None = None,
        *,
        catch_up: bool = False,
    ) -> Job:
        """Go on with the next future time; `catch_up` treats what was missed as the misfire rules say."""
        return await self._write(
            lambda conn, now: self.resumed(conn, now, id_or_name, by, revision, catch_up=catch_up)
        )

    def resumed(
        self,
        conn: Connection,
        now: datetime,
        id_or_name: str,
        by: str | None,
        revision: int | None = None,
        *,
        catch_up: bool = False,
    ) -> Job:
        """As `resume`, within a transaction of the caller's."""
        old = _locked(conn, id_or_name, now, revision)
        if not old.paused:
            raise MoveRefused(old.state, JobState.SCHEDULED, "it is not paused")
        check(old.timing)
        new = cursor.end_pause(conn, old, now, catch_up=catch_up)
        new = replace(new, state=_resting(conn, new))
        return self._saved(conn, old, new, now, by, "resume")

    async def skip_next(self, id_or_name: str, by: str | None = None, revision: int | None = None) -> Job:
        """Let its next run by the schedule not happen; the one after it comes as ever."""
        return await self._write(lambda conn, now: self.next_skipped(conn, now, id_or_name, by, revision))

    def next_skipped(
        self, conn: Connection, now: datetime, id_or_name: str, by: str | None, revision: int | None = None
    ) -> Job:
        """As `skip_next`, within a transaction of the caller's."""
        old = _locked(conn, id_or_name, now, revision)
        check(old.timing)
        new, due = pass_over_next(conn, old, now, by or NOBODY)
        new = replace(new, state=_resting(conn, new))
        jobs.skip_through(conn, new)
        audit.record(conn, entry(now, by, "skip-next", new, None, {"scheduled_for": due.isoformat()}))
        return new

    async def cancel(self, id_or_name: str, by: str | None = None, revision: int | None = None) -> Job:
        """For good: nothing of it starts again, and what runs is asked to stop."""
        return await self._write(lambda conn, now: self.cancelled(conn, now, id_or_name, by, revision))

    def cancelled(
        self, conn: Connection, now: datetime, id_or_name: str, by: str | None, revision: int | None = None
    ) -> Job:
        """As `cancel`, within a transaction of the caller's."""
        old = _locked(conn, id_or_name, now, revision)
        state = move(old.state, JobState.CANCELLED)
        new = cursor.unplan(conn, old, now, SkipReason.CANCELLED)
        executions.cancel_of_job(conn, old.id, by or NOBODY, now)
        return self._saved(conn, old, replace(new, state=state, next_run_at=None), now, by, "cancel")

    async def remove(self, id_or_name: str, by: str | None = None, revision: int | None = None) -> Job:
        """With its history; what runs is asked to stop."""
        return await self._write(lambda conn, now: self.removed(conn, now, id_or_name, by, revision))

    def removed(
        self, conn: Connection, now: datetime, id_or_name: str, by: str | None, revision: int | None = None
    ) -> Job:
        """As `remove`, within a transaction of the caller's."""
        old = _locked(conn, id_or_name, now, revision)
        dependencies.refuse_if_needed(conn, old)
        executions.cancel_of_job(conn, old.id, by or NOBODY, now)
        jobs.remove(conn, old.id)
        audit.record(conn, entry(now, by, "delete", old, snapshot(old), None))
        return old

    async def force_run(
        self, id_or_name: str, by: str | None = None, config: Mapping[str, Any] | None = None
    ) -> Execution:
        """One run now, beside the schedule; of a paused or disabled job too."""
        return await self._write(lambda conn, now: self.forced(conn, now, id_or_name, by, config))

    def forced(
        self,
        conn: Connection,
        now: datetime,
        id_or_name: str,
        by: str | None,
        config: Mapping[str, Any] | None = None,
    ) -> Execution:
        """As `force_run`, within a transaction of the caller's."""
        job = jobs.lock(conn, id_or_name)
        refuse_overlap(conn, job)
        return self._forced(conn, job, records.forced(job, now, by, config), "force-run")

    async def retry(self, id_or_name: str, by: str | None = None) -> Execution:
        """Run again what failed, with all its retries ahead of it."""

        def work(conn: Connection, now: datetime) -> Execution:
            job = jobs.lock(conn, id_or_name)
            if job.last_status != ExecutionState.FAILED:
                last = f"its last run is {job.last_status}" if job.last_status else "it has not run yet"
                raise MoveRefused(job.state, JobState.PENDING, f"{last}; force-run starts it all the same")
            refuse_overlap(conn, job)
            return self._forced(conn, job, records.forced(job, now, by, None), "retry")

        return await self._write(work)

    def _check(self, job: Job) -> None:
        check(job.timing)
        self._vet(job)

    async def _write(self, work: Callable[[Connection, datetime], T]) -> T:
        # The time is asked inside: a transaction may have waited for its turn.
        return await self._db.write(lambda conn: work(conn, self._clock.now()))

    def _saved(self, conn: Connection, old: Job, new: Job, now: datetime, by: str | None, action: str) -> Job:
        saved = jobs.save(conn, replace(new, updated_at=now))
        audit.record(conn, entry(now, by, action, saved, *difference(old, saved)))
        return saved

    def _forced(self, conn: Connection, job: Job, run: Execution, action: str) -> Execution:
        if job.state not in _BUSY:
            # The definition stays as it is, so the revision does too.
            moved = Advance(
                job_id=job.id,
                next_run_at=job.next_run_at,
                fire_count=job.fire_count,
                state=pending(job.state),
            )
            jobs.advance(conn, [moved])
        while not executions.plan(conn, [run]):  # two within one microsecond
            run = replace(run, scheduled_for=run.scheduled_for + _TICK)
        audit.record(
            conn, entry(run.created_at, run.triggered_by, action, job, None, {"execution_id": run.id})
        )
        return run


def _locked(conn: Connection, id_or_name: str, now: datetime, revision: int | None = None) -> Job:
    job = jobs.lock(conn, id_or_name)
    if revision is not None and revision != job.revision:
        raise Outdated(f"{job.name!r} was changed: it is at revision {job.revision}, not {revision}")
    if job.state is JobState.CANCELLED or not cursor.changed_by_plain_sql(conn, job):
        return job
    try:
        check(job.timing)
    except Invalid:
        return replace(job, next_run_at=None)
    anew = cursor.retime(conn, job, job, now)
    return replace(anew, state=_resting(conn, anew))


def _scheduled_anew(conn: Connection, old: Job, new: Job, now: datetime) -> Job:
    """What a change of timing or of the switch means for the cursor; any other change leaves it alone."""
    if new.timing == old.timing and new.enabled == old.enabled:
        return new
    if old.state is JobState.CANCELLED:
        raise MoveRefused(old.state, JobState.SCHEDULED, "create a new job")
    if new.timing != old.timing:
        new = cursor.retime(conn, old, new, now)
    elif new.paused:
        return new
    elif new.enabled:
        new = cursor.release(conn, new, now, SkipReason.DISABLED)
    else:
        new = cursor.hold(conn, new, now, SkipReason.DISABLED)
    return replace(new, state=_resting(conn, new))


def _resting(conn: Connection, job: Job) -> JobState:
    return _at_rest(job, open_work_of(conn, job))


def _at_rest(job: Job, work: OpenWork = NOTHING_OPEN) -> JobState:
    return resting_state(
        job=job,
        open_running=work.running,
        open_waiting_manual=work.forced,
        open_waiting=work.waiting,
        last_status=job.last_status,
    )
