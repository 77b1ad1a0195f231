"""The streams as the rows see them: what a message is worth, what has to be put there, what was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import Connection, select

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, Road
from noonday.domain.job import Lane, Overlap, OverlapPolicy
from noonday.domain.outcome import Failed, Lost, Parked, Released
from noonday.ports import Parcel, Pledge
from noonday.store import executions, feeding, jobs
from noonday.store import tables as t
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.store.notices import WORK
from tests.factories import LEASE, NOON, a_job, an_execution, an_id
from tests.store.feeding_steps import ALLOW, claim_these, enqueued, held, on_streams, unfed
from tests.store.store_steps import (
    MINUTE,
    OK,
    SECOND,
    add,
    analyse,
    as_new,
    claim,
    end,
    ending,
    look,
    plan,
    settle,
)
from tests.store.test_store_indexes import explained, no_full_scan


class TestFeeding:
    def test_a_planned_row_is_unfed_unless_it_was_promised(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        on_streams(db, job)
        waiting = an_execution(job=job, scheduled_for=NOON - SECOND, road=Road.STREAMS, lane=Lane.HIGH)
        database = an_execution(job=job, scheduled_for=NOON - MINUTE)
        plan(db, waiting, database)
        assert unfed(db) == [Pledge(NOON - SECOND, Parcel(Lane.HIGH, waiting.id))]
        assert db.read_now(feeding.next_unfed_at) == NOON - SECOND

    def test_it_finds_the_oldest_first_up_to_a_moment_and_for_some_lanes(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        rows = [
            an_execution(job=job, scheduled_for=NOON - n * SECOND, road=Road.STREAMS, lane=lane)
            for n, lane in enumerate((Lane.LOW, Lane.NORMAL, Lane.HIGH, Lane.LOW))
        ]
        plan(db, *rows, an_execution(job=job, scheduled_for=NOON + SECOND, road=Road.STREAMS))
        assert [one.parcel.execution_id for one in unfed(db)] == [row.id for row in reversed(rows)]
        assert [one.parcel.execution_id for one in unfed(db, limit=2)] == [rows[3].id, rows[2].id]
        some = db.write_now(lambda conn: feeding.unfed(conn, NOON, 9, (Lane.HIGH, Lane.NORMAL)))
        assert [one.parcel.execution_id for one in some] == [rows[2].id, rows[1].id]

    def test_what_is_marked_is_no_longer_unfed(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        row = an_execution(job=job, road=Road.STREAMS)
        plan(db, row)
        db.write_now(lambda conn: feeding.mark_fed(conn, [row.id], NOON))
        assert unfed(db) == []
        assert enqueued(db, row) == NOON

    def test_what_was_claimed_meanwhile_is_not_marked(self, db: Database) -> None:
        """Or its retry would be taken for one that is on the streams."""
        job = a_job()
        add(db, job)
        row = an_execution(job=job, road=Road.STREAMS)
        plan(db, row)
        assert len(claim(db)) == 1
        db.write_now(lambda conn: feeding.mark_fed(conn, [row.id], NOON))
        assert enqueued(db, row) is None

    def test_what_another_transaction_holds_is_left_for_later(self, postgres_db: Database) -> None:
        job = a_job()
        add(postgres_db, job)
        row = an_execution(job=job, road=Road.STREAMS)
        plan(postgres_db, row)
        mine = select(t.executions.c.id).where(t.executions.c.id == row.id).with_for_update()
        with held(postgres_db, lambda conn: conn.execute(mine)):
            assert unfed(postgres_db) == []
            assert postgres_db.read_now(feeding.next_unfed_at) == NOON
        assert len(unfed(postgres_db)) == 1

    def test_it_suspects_what_should_have_been_claimed_by_now(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        late, due = on_streams(db, job, NOON - MINUTE), on_streams(db, job, NOON)
        running = on_streams(db, job, NOON - 2 * MINUTE)
        claim_these(db, running)
        plan(db, an_execution(job=job, scheduled_for=NOON - 3 * MINUTE, road=Road.STREAMS))  # unfed
        plan(db, an_execution(job=job, scheduled_for=NOON - 4 * MINUTE))  # of the other road

        def suspects(before: datetime, lane: Lane = Lane.NORMAL) -> list[str]:
            found = db.read_now(lambda conn: feeding.suspects(conn, lane, before, 10))
            return [one.parcel.execution_id for one in found]

        assert suspects(NOON - SECOND) == [late.id]
        assert suspects(NOON) == [late.id, due.id]
        assert suspects(NOON, Lane.HIGH) == []

    def test_it_goes_through_suspects_page_by_page_though_many_are_due_at_once(self, db: Database) -> None:
        made = [a_job() for _ in range(25)]
        add(db, *made)
        rows = [on_streams(db, job, NOON - (n % 3) * SECOND) for n, job in enumerate(made)]
        seen: list[str] = []
        after: Pledge | None = None
        for _ in range(9):
            page = db.read_now(lambda conn: feeding.suspects(conn, Lane.NORMAL, NOON, 4, after))  # noqa: B023
            if not page:
                break
            seen += [one.parcel.execution_id for one in page]
            after = page[-1]
        assert len(seen) == len(set(seen)) == len(rows)

    def test_what_was_lost_is_unfed_again_and_nothing_else(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        lost, running = on_streams(db, job), on_streams(db, job, NOON - SECOND)
        claim_these(db, running)
        assert db.write_now(lambda conn: feeding.unfeed(conn, [lost.id, running.id])) == 1
        assert [one.parcel.execution_id for one in unfed(db)] == [lost.id]
        assert db.write_now(lambda conn: feeding.unfeed(conn, [lost.id])) == 0


OVERDUE = NOON + timedelta(hours=3)


class TestMadeClaimable:
    """Whatever makes a row claimable leaves it unfed and tells of it: the leader puts it on the road."""

    async def fed_anew(self, db: Database, row: Execution, act: Callable[[], object]) -> None:
        told = db.subscribe(WORK)
        await asyncio.to_thread(act)
        async with asyncio.timeout(10):
            await told.wait()
        found = await db.write(lambda conn: feeding.unfed(conn, OVERDUE, 10))
        assert [one.parcel.execution_id for one in found] == [row.id]

    @pytest.mark.parametrize("outcome", [Failed(error="no"), Released(), Lost(detail="gone")])
    async def test_a_run_that_is_tried_again(self, db: Database, outcome: Failed | Released | Lost) -> None:
        job = a_job()
        add(db, job)
        row = on_streams(db, job)
        (claimed,) = claim_these(db, row).claims
        await self.fed_anew(db, row, lambda: end(db, claimed, outcome))

    async def test_a_run_that_gets_its_turn(self, db: Database) -> None:
        job = a_job(overlapping=OverlapPolicy(overlap=Overlap.QUEUE))
        add(db, job)
        first, second = on_streams(db, job, NOON - SECOND), on_streams(db, job)
        (claimed,) = claim_these(db, first, second).claims
        await self.fed_anew(db, second, lambda: end(db, claimed))

    async def test_a_run_whose_parent_succeeded(self, db: Database) -> None:
        parent = a_job()
        child = a_job(depends_on=(parent.id,))
        add(db, parent, child)
        above, below = on_streams(db, parent), on_streams(db, child)
        (claimed,) = claim_these(db, above, below).claims
        await self.fed_anew(db, below, lambda: end(db, claimed))

    async def test_a_follower_takes_the_road_of_its_own_job(self, db: Database) -> None:
        parent = a_job()
        child = a_job(on_success_of=(parent.id,), scheduler_version=2)
        add(db, parent, child)
        plan(db, an_execution(job=parent))
        (claimed,) = claim(db)
        told = db.subscribe(WORK)
        await asyncio.to_thread(end, db, claimed)
        async with asyncio.timeout(10):
            await told.wait()
        (found,) = await db.write(lambda conn: feeding.unfed(conn, OVERDUE, 10))
        row = look(db, found.parcel.execution_id)
        assert (row.job_id, row.cause, row.road) == (child.id, Cause.UPSTREAM, Road.STREAMS)

    async def test_a_run_whose_task_is_known_now(self, db: Database) -> None:
        job = a_job()
        add(db, job)
        row = on_streams(db, job)
        (claimed,) = claim_these(db, row).claims
        end(db, claimed, Parked(detail="nobody knows noop"))
        assert unfed(db, OVERDUE) == []
        await self.fed_anew(db, row, lambda: db.write_now(lambda conn: executions.unpark(conn, ["noop"])))

    async def test_a_run_whose_worker_died(self, db: Database) -> None:
        job = a_job()
        add(db, job)
        row = on_streams(db, job)
        claim_these(db, row)
        dead = db.read_now(lambda conn: executions.expired(conn, NOON + MINUTE))
        await self.fed_anew(db, row, lambda: settle(db, dead, NOON + MINUTE))

    async def test_a_child_skipped_for_its_parent_that_succeeds_after_all(self, db: Database) -> None:
        parent = a_job()
        child = a_job(depends_on=(parent.id,))
        add(db, parent, child)
        failing = on_streams(db, parent)
        (claimed,) = claim_these(db, failing).claims
        end(db, claimed, Failed(error="no", retryable=False))
        below = on_streams(db, child, NOON + SECOND)
        assert claim_these(db, below, now=NOON + SECOND).done == [below.id]
        assert look(db, below).state is ExecutionState.SKIPPED
        plan(db, an_execution(job=parent, cause=Cause.MANUAL, scheduled_for=NOON))
        (again,) = claim(db, NOON + 2 * SECOND)
        await self.fed_anew(db, below, lambda: end(db, again, OK, NOON + 3 * SECOND))


class TestOverdue:
    def test_a_claim_may_be_for_overdue_work_alone(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        late, _ = on_streams(db, job, NOON - MINUTE), on_streams(db, job, NOON - SECOND)
        plan(db, an_execution(job=job, scheduled_for=NOON - 2 * MINUTE))
        order = ClaimOrder(
            instance_id="i", limit=9, now=NOON, lease=LEASE, roads=(Road.STREAMS,), overdue=3 * SECOND
        )
        claims = db.write_now(lambda conn: executions.claim(conn, order))
        assert [one.execution.id for one in claims] == [late.id]
        assert claims[0].execution.lease_expires_at == NOON + LEASE


@pytest.fixture(params=["analysed", "as it grew"])
def full(db: Database, request: pytest.FixtureRequest) -> Database:
    """Much history, much on the streams, and a little that is not."""
    quiet = [a_job() for _ in range(300)]
    busy = a_job(overlapping=ALLOW)

    def fill(conn: Connection) -> None:
        jobs.add_many(conn, [*quiet, busy])
        done = [
            an_execution(
                job=busy,
                scheduled_for=NOON - n * MINUTE,
                road=Road.STREAMS,
                state=ExecutionState.COMPLETED,
                completed_at=NOON,
            )
            for n in range(1, 3000)
        ]
        fed = [an_execution(job=job, scheduled_for=NOON, road=Road.STREAMS) for job in quiet]
        executions.plan(conn, [*done, *fed], {row.id for row in fed})
        executions.plan(conn, [an_execution(job=busy, road=Road.STREAMS)])

    as_new(db).write_now(fill)
    if request.param == "analysed" or db.dialect == "postgresql":
        analyse(db)
    return db


class TestIndexes:
    def test_looking_for_unfed_rows_reads_unfed_ones_alone(self, full: Database) -> None:
        plans = explained(full, lambda conn: feeding.unfed(conn, NOON, 100))
        assert "executions_unfed_idx" in plans[0]
        plans = explained(full, feeding.next_unfed_at)
        assert "executions_unfed_idx" in plans[0]

    def test_marking_finds_its_rows_by_an_index(self, full: Database) -> None:
        ids = [one.parcel.execution_id for one in unfed(full)]
        by_id = "(id=?)" if full.dialect == "sqlite" else "executions_pkey"
        for work in (partial(feeding.mark_fed, ids=ids, now=NOON), partial(feeding.unfeed, ids=ids)):
            (told,) = explained(full, work)
            assert by_id in told

    def test_looking_for_suspects_reads_claimable_ones_alone(self, full: Database) -> None:
        after = Pledge(NOON, Parcel(Lane.NORMAL, ExecutionId(an_id())))
        for start in (None, after):
            plans = explained(full, lambda conn: feeding.suspects(conn, Lane.NORMAL, NOON, 100, start))  # noqa: B023
            assert "executions_claimable_idx" in plans[0]

    def test_a_claim_by_message_finds_its_rows_by_their_ids(self, full: Database) -> None:
        page = full.read_now(lambda conn: feeding.suspects(conn, Lane.NORMAL, NOON, 20))
        ids = [one.parcel.execution_id for one in page]
        order = ClaimOrder(instance_id="i", limit=20, now=NOON, lease=LEASE)
        plans = explained(
            full, partial(executions.claim_these, order=order, ids=[*ids, ExecutionId(an_id())])
        )
        no_full_scan(plans)
        by_id = "(id=?)" if full.dialect == "sqlite" else "executions_pkey"
        assert by_id in plans[0], plans[0]


def test_an_ending_of_an_old_message_is_refused_like_any_other(db: Database) -> None:
    """A message that came twice may be claimed twice one after the other, never on two living leases."""
    job = a_job()
    add(db, job)
    row = on_streams(db, job)
    (first,) = claim_these(db, row).claims
    assert claim_these(db, row, instance="i2").done == [row.id]
    dead = db.read_now(lambda conn: executions.expired(conn, NOON + MINUTE))
    settle(db, dead, NOON + MINUTE)
    (second,) = claim_these(db, row, now=NOON + MINUTE, instance="i2").claims
    assert second.execution.attempt == 2
    assert settle(db, [ending(first)], NOON + MINUTE) == []
    assert len(settle(db, [ending(second)], NOON + MINUTE)) == 1
