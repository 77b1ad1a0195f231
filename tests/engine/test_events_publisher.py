"""What happens to executions reaches the table of events: in batches, bounded, and off the hot path."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from noonday.control.executions import Executions, Report
from noonday.domain.execution import Execution, SkipReason
from noonday.domain.job import JobId, RetryPolicy
from noonday.domain.outcome import (
    Accepted,
    Cancelled,
    Completed,
    Deferred,
    Failed,
    Lost,
    Outcome,
    Parked,
    Released,
    TimedOut,
)
from noonday.domain.schedule import Immediate
from noonday.domain.settling import settle
from noonday.engine.events import Publisher, recovered
from noonday.ports import Claim, Silence
from noonday.store import events, executions, jobs
from noonday.store.database import Database, StoreDown
from noonday.store.events import Event
from noonday.store.executions import ClaimOrder, Ending
from noonday.targets.tasks import current
from noonday.testing import ManualClock, ManualInstance
from tests.factories import NOON, a_job, a_running_execution, an_execution, an_id

SECOND = timedelta(seconds=1)


class Counted(Silence):
    """Telemetry that stands behind the publisher."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def started(self, claim: Claim, late: timedelta) -> None:
        self.calls.append("started")

    def ended(self, claim: Claim, outcome: Outcome, took: float) -> None:
        self.calls.append("ended")

    def skipped(self, job_id: JobId, reason: SkipReason, count: int) -> None:
        self.calls.append("skipped")

    def campaigned(self) -> None:
        self.calls.append("campaigned")


def a_claim(**retry: int) -> Claim:
    job = a_job(retry=RetryPolicy(**retry))  # type: ignore[arg-type]
    return Claim(job, a_running_execution(job=job))


def publisher(db: Database, keep: int = 1000, most: int = 250) -> Publisher:
    return Publisher(db=db, clock=ManualClock(NOON), telemetry=Silence(), keep=keep, most=most)


async def told(db: Database) -> list[Event]:
    look = await db.read(lambda conn: events.look(conn, lambda event: event, 0, 10_000))
    return list(look.events)


async def test_runs_are_told_in_order_and_with_their_names(db: Database) -> None:
    made = publisher(db)
    claim = a_claim()
    await db.write(lambda conn: jobs.add(conn, claim.job))
    made.started(claim, SECOND)
    made.progressed(claim.execution, 0.5, "half")
    made.ended(claim, Completed(), 2.0)
    assert await told(db) == []
    await made.run_once()
    started, progressed, ended = await told(db)
    assert [one.kind for one in (started, progressed, ended)] == [
        "execution.started",
        "execution.progressed",
        "execution.ended",
    ]
    assert {one.job_name for one in (started, progressed, ended)} == {claim.job.name}
    assert {one.execution_id for one in (started, progressed, ended)} == {claim.execution.id}
    assert started.payload["lateness_ms"] == 1000
    assert progressed.payload == {"progress": 0.5, "message": "half"}
    assert ended.payload == {
        "attempt": 1,
        "status": "completed",
        "outcome": "completed",
        "duration_ms": 2000,
        "error": None,
    }


@pytest.mark.parametrize(
    ("outcome", "retries", "kind", "status"),
    [
        (Completed(), 3, "execution.ended", "completed"),
        (Cancelled(), 3, "execution.ended", "cancelled"),
        (Failed(error="no"), 3, "execution.retrying", "pending"),
        (Failed(error="no"), 0, "execution.ended", "failed"),
        (Failed(error="no", retryable=False), 3, "execution.ended", "failed"),
        (TimedOut(after=SECOND), 3, "execution.retrying", "pending"),
        (TimedOut(after=SECOND), 0, "execution.ended", "failed"),
        (Released(), 3, "execution.waiting", "queued"),
        (Parked(detail="unknown"), 3, "execution.waiting", "pending"),
    ],
)
async def test_an_end_says_what_became_of_the_execution_as_the_settling_does(
    sqlite_db: Database, outcome: Outcome, retries: int, kind: str, status: str
) -> None:
    made, claim = publisher(sqlite_db), a_claim(max_retries=retries)
    made.ended(claim, outcome, 1.0)
    await made.run_once()
    (event,) = await told(sqlite_db)
    assert (event.kind, event.payload["status"]) == (kind, status)
    assert settle(claim.job, claim.execution, outcome, NOON).execution.state == status


async def test_what_goes_on_elsewhere_or_never_began_has_not_ended(sqlite_db: Database) -> None:
    made = publisher(sqlite_db)
    made.ended(a_claim(), Accepted(heartbeat=SECOND), 1.0)
    made.ended(a_claim(), Deferred(domain="a", until=NOON, detail=""), 1.0)
    await made.run_once()
    assert await told(sqlite_db) == []


async def test_a_run_whose_worker_died_is_told_of_too(sqlite_db: Database) -> None:
    claim = a_claim()
    again = settle(claim.job, claim.execution, Lost(detail="gone"), NOON)
    news = recovered(again, NOON)
    assert (news.kind, news.payload["status"], news.payload["outcome"]) == (
        "execution.waiting",
        "pending",
        "lost",
    )


async def test_beyond_the_bound_it_only_counts(db: Database) -> None:
    made = publisher(db, most=10)
    for _ in range(25):
        made.started(a_claim(), SECOND)
    for _ in range(5):
        made.ended(a_claim(), Failed(error="no"), 1.0)
    await made.run_once()
    *single, many = await told(db)
    assert [one.kind for one in single] == ["execution.started"] * 10
    assert (many.kind, many.payload) == ("executions.many", {"counts": {"started": 15, "failed": 5}})
    made.started(a_claim(), SECOND)
    await made.run_once()
    assert (await told(db))[-1].kind == "execution.started"


async def test_everything_is_passed_on(sqlite_db: Database) -> None:
    behind = Counted()
    made = Publisher(db=sqlite_db, clock=ManualClock(NOON), telemetry=behind, keep=10)
    made.started(a_claim(), SECOND)
    made.ended(a_claim(), Completed(), 1.0)
    made.skipped(JobId(an_id()), SkipReason.OVERLAP, 2)
    made.campaigned()
    assert behind.calls == ["started", "ended", "skipped", "campaigned"]


async def test_skips_come_from_the_threads_of_the_store(sqlite_db: Database) -> None:
    made, job_id = publisher(sqlite_db), JobId(an_id())
    thread = threading.Thread(target=made.skipped, args=(job_id, SkipReason.MISFIRE, 3))
    thread.start()
    await asyncio.to_thread(thread.join)
    await asyncio.wait_for(made.wake.wait(), 10)
    await made.run_once()
    (event,) = await told(sqlite_db)
    assert (event.kind, event.job_id) == ("execution.skipped", job_id)
    assert event.payload == {"reason": "misfire", "count": 3}


async def test_while_the_database_is_away_it_keeps_what_fits(
    sqlite_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = publisher(sqlite_db, most=3)

    async def away(_: object, **how: bool) -> None:
        made.started(a_claim(), SECOND)  # meanwhile
        raise StoreDown

    for _ in range(5):
        made.started(a_claim(), SECOND)
    with monkeypatch.context() as outage:
        outage.setattr(sqlite_db, "write", away)
        with pytest.raises(StoreDown):
            await made.run_once()
    await made.run_once()
    found = await told(sqlite_db)
    assert [one.kind for one in found] == ["execution.started"] * 4 + ["executions.many"]
    assert found[-1].payload == {"counts": {"started": 2}}


async def test_it_prunes_what_it_writes(db: Database) -> None:
    made = publisher(db, keep=20)
    for _ in range(10):
        for _ in range(5):
            made.started(a_claim(), SECOND)
        await made.run_once()
    found = await told(db)
    assert 20 <= len(found) <= 40
    assert found[-1].seq == 50


async def test_the_last_words_are_written_when_it_is_stopped(sqlite_db: Database) -> None:
    made = publisher(sqlite_db)
    life = asyncio.create_task(made.run())
    made.started(a_claim(), SECOND)
    async with asyncio.timeout(10):
        while not await told(sqlite_db):
            await asyncio.sleep(0.01)
    made.ended(a_claim(), Completed(), 1.0)  # within the pause between two flushes
    life.cancel()
    with pytest.raises(asyncio.CancelledError):
        await life
    assert [one.kind for one in await told(sqlite_db)] == ["execution.started", "execution.ended"]


class Progress(Silence):
    def __init__(self) -> None:
        self.told: list[tuple[float | None, str | None]] = []

    def progressed(self, execution: Execution, fraction: float | None, message: str | None) -> None:
        self.told.append((fraction, message))


async def test_progress_of_a_run_here_is_told(sqlite_url: str) -> None:
    async with ManualInstance(sqlite_url) as scheduler:
        heard = scheduler.engine.reporter._telemetry = Progress()

        @scheduler.task
        async def steps() -> None:
            current().progress(0.25, "a quarter")

        await scheduler.add("steps", Immediate(), "steps")
        await scheduler.run_once()
        assert heard.told == [(0.25, "a quarter")]


async def test_progress_of_a_remote_run_is_told_where_it_is_reported(sqlite_db: Database) -> None:
    heard = Progress()
    job = a_job()
    execution = an_execution(job=job)

    def begin(conn: Connection) -> None:
        jobs.add(conn, job)
        executions.plan(conn, [execution])
        order = ClaimOrder(instance_id="i", limit=1, now=NOON, lease=timedelta(seconds=30))
        (claim,) = executions.claim(conn, order)
        ending = Ending(
            execution_id=execution.id,
            token=claim.execution.lease_token or "",
            outcome=Accepted(heartbeat=timedelta(minutes=1)),
        )
        executions.settle(conn, [ending], NOON)

    await sqlite_db.write(begin)
    desk = Executions(sqlite_db, ManualClock(NOON), check_token=lambda *_: True, telemetry=heard)
    await desk.report(execution.id, "token", Report())
    assert heard.told == []  # a sign of life alone is no news
    await desk.report(execution.id, "token", Report(progress=0.5, message="half"))
    assert heard.told == [(0.5, "half")]
