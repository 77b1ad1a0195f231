"""Executions that the road names are claimed like any other: the row decides, the message is a hint."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial

from sqlalchemy import Connection, select, update

from noonday.domain.execution import ExecutionState, Road, WaitReason
from noonday.domain.job import Lane, Overlap, OverlapPolicy
from noonday.store import executions
from noonday.store import tables as t
from noonday.store.claiming import SOON
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from tests.factories import LEASE, NOON, a_job, an_execution, an_id
from tests.store.feeding_steps import ALLOW, claim_these, enqueued, held, on_streams
from tests.store.store_steps import MINUTE, SECOND, add, claim, end, look, plan, sql


class TestClaimThese:
    def test_it_claims_as_the_database_road_does(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        low = on_streams(db, job, NOON - SECOND, lane=Lane.LOW)
        old = on_streams(db, job, NOON - MINUTE)
        new = on_streams(db, job, NOON)
        taken = claim_these(db, new, low, old)
        assert [one.execution.id for one in taken.claims] == [old.id, new.id, low.id]
        assert (taken.done, taken.later) == ([], {})
        for claimed in taken.claims:
            row = look(db, claimed.execution.id)
            assert row == claimed.execution
            assert (row.state, row.instance_id, row.attempt) == (ExecutionState.RUNNING, "i1", 1)
            assert row.lease_expires_at == NOON + LEASE
            assert enqueued(db, row) is None
            end(db, claimed)

    def test_a_message_about_nothing_is_done_with(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        finished, running, waiting = (on_streams(db, job, NOON - n * SECOND) for n in (1, 2, 3))
        (claimed,) = claim_these(db, finished).claims
        end(db, claimed)
        assert len(claim_these(db, running).claims) == 1
        values = {"state": "pending", "available_at": None, "wait_reason": "dependency"}
        waits = update(t.executions).where(t.executions.c.id == waiting.id).values(values)
        db.write_now(lambda conn: conn.execute(waits))
        gone = an_id()
        taken = claim_these(db, finished, running, waiting, gone, "no id at all", "")
        assert taken.claims == []
        assert taken.later == {}
        assert set(taken.done) == {finished.id, running.id, waiting.id, gone, "no id at all", ""}

    def test_what_is_skipped_or_made_to_wait_by_the_claim_is_done_with(self, db: Database) -> None:
        paused, single = a_job(paused=True), a_job(overlapping=OverlapPolicy(overlap=Overlap.QUEUE))
        add(db, paused, single)
        skipped = on_streams(db, paused)
        first, second = on_streams(db, single, NOON - SECOND), on_streams(db, single)
        taken = claim_these(db, skipped, first, second)
        assert [one.execution.id for one in taken.claims] == [first.id]
        assert set(taken.done) == {skipped.id, second.id}
        assert look(db, skipped).state is ExecutionState.SKIPPED
        assert look(db, second).wait_reason is WaitReason.OVERLAP
        assert enqueued(db, skipped) is enqueued(db, second) is None

    def test_a_row_whose_job_is_gone_or_cannot_be_read_is_ended(self, db: Database) -> None:
        broken, gone = a_job(), a_job()
        add(db, broken, gone)
        mad, orphan = on_streams(db, broken), on_streams(db, gone)
        sql(db, f"UPDATE jobs SET overlap = 'perhaps' WHERE id = '{broken.id}'")
        db.write_now(lambda conn: conn.execute(t.jobs.delete().where(t.jobs.c.id == gone.id)))
        taken = claim_these(db, mad, orphan)
        assert taken.claims == []
        assert set(taken.done) == {mad.id, orphan.id}
        assert look(db, mad).state is ExecutionState.FAILED
        assert look(db, orphan).state is ExecutionState.CANCELLED

    def test_what_is_not_quite_due_is_asked_for_then(self, db: Database) -> None:
        """Clocks differ by a little. What is far ahead has a message of its own to come."""
        job = a_job(overlapping=ALLOW)
        add(db, job)
        near, far = on_streams(db, job, NOON + SECOND), on_streams(db, job, NOON + SOON + SECOND)
        taken = claim_these(db, near, far)
        assert taken.claims == []
        assert taken.later == {near.id: NOON + SECOND}
        assert set(taken.done) == {far.id}
        assert len(claim_these(db, near, now=NOON + SECOND).claims) == 1

    def test_what_another_transaction_holds_is_asked_for_again(self, postgres_db: Database) -> None:
        db = postgres_db
        busy, free = a_job(overlapping=ALLOW), a_job(overlapping=ALLOW)
        add(db, busy, free)
        its_job, itself, other = (
            on_streams(db, busy),
            on_streams(db, free),
            on_streams(db, free, NOON - SECOND),
        )

        def lock(conn: Connection) -> None:
            conn.execute(select(t.jobs.c.id).where(t.jobs.c.id == busy.id).with_for_update())
            conn.execute(select(t.executions.c.id).where(t.executions.c.id == itself.id).with_for_update())

        with held(db, lock):
            taken = claim_these(db, its_job, itself, other)
            assert [one.execution.id for one in taken.claims] == [other.id]
            assert set(taken.later) == {its_job.id, itself.id}
            assert not taken.done
        again = claim_these(db, its_job, itself)
        assert {one.execution.id for one in again.claims} == {its_job.id, itself.id}

    def test_what_waits_for_the_word_of_a_busy_parent_is_asked_for_again(self, postgres_db: Database) -> None:
        db = postgres_db
        parent = a_job()
        child = a_job(depends_on=(parent.id,))
        add(db, parent, child)
        row = on_streams(db, child)
        with held(
            db,
            lambda conn: conn.execute(select(t.jobs.c.id).where(t.jobs.c.id == parent.id).with_for_update()),
        ):
            assert set(claim_these(db, row).later) == {row.id}
        assert claim_these(db, row).done == [row.id]  # it waits for its parent, and says so
        assert look(db, row).wait_reason is WaitReason.DEPENDENCY

    def test_two_takers_of_the_same_messages_claim_each_once(self, db: Database, db_url: str) -> None:
        made = [a_job(overlapping=ALLOW) for _ in range(10)]
        add(db, *made)
        rows = [
            an_execution(job=job, scheduled_for=NOON - n * SECOND, road=Road.STREAMS)
            for job in made
            for n in range(20)
        ]
        plan(db, *rows)
        other = Database(db_url)
        got: list[str] = []
        start = threading.Barrier(4)

        def taker(name: str, mine: Database) -> None:
            left = [row.id for row in rows]
            order = ClaimOrder(instance_id=name, limit=len(left), now=NOON, lease=LEASE)
            start.wait(10)
            while left:
                work = partial(executions.claim_these, order=order, ids=left[:25])
                taken = mine.write_now(work)
                got.extend(one.execution.id for one in taken.claims)
                left = left[25:] + list(taken.later)

        threads = [
            threading.Thread(target=taker, args=(f"i{n}", mine))
            for n, mine in enumerate((db, db, other, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        other.close_now()
        assert len(got) == len(rows)
        assert max(Counter(got).values()) == 1

    def test_the_two_roads_never_give_the_same_row(self, db: Database, db_url: str) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        rows = [an_execution(job=job, scheduled_for=NOON - n * SECOND, road=Road.STREAMS) for n in range(60)]
        plan(db, *rows)
        other = Database(db_url)
        got: list[str] = []
        start = threading.Barrier(2)

        def by_message() -> None:
            left = [row.id for row in rows]
            start.wait(10)
            while left:
                taken = claim_these(db, *left[:5])
                got.extend(one.execution.id for one in taken.claims)
                left = left[5:] + list(taken.later)

        def by_row() -> None:
            start.wait(10)
            while other.read_now(executions.next_available_at) is not None:
                got.extend(one.execution.id for one in claim(other, limit=5, instance="i2"))

        threads = [threading.Thread(target=work) for work in (by_message, by_row)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        other.close_now()
        assert sorted(got) == sorted(row.id for row in rows)
