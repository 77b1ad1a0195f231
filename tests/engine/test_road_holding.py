"""Messages in hands: kept while their run lives, taken over when their holder is dead."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Lane
from noonday.domain.outcome import Accepted
from noonday.store import executions
from noonday.store.database import Database
from noonday.testing import Faults
from tests.engine.road_steps import (
    CLOCK,
    Target,
    add,
    completed,
    force,
    machine,
    rows,
    settled,
    until,
)
from tests.engine.taking_steps import LONG, WORKER, Heard, a_road, by_hand, pledged, put


async def test_a_new_process_of_the_same_name_goes_on_with_what_the_old_one_held(db_url: str) -> None:
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER, instance_id="named", lease=LONG) as one:
        job = await add(one.db)
        execution_id = await put(one, road, job)
        assert len(await road.queue("named").take(5, timedelta())) == 1  # and dies before it claims
        async with one.running():
            await until(lambda: one.target.ran == [execution_id], "the run", seconds=5)
            await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_what_a_dead_instance_held_is_taken_over_after_the_lease(db_url: str) -> None:
    road, heard = a_road(), Heard()
    lease = timedelta(seconds=1)
    async with machine(db_url, queue=road.queue, roles=WORKER, lease=lease) as one:
        one.engine.taker._telemetry = heard
        job = await add(one.db, lane=Lane.HIGH)
        done = await put(one, road, job)
        open_ = await put(one, road, job)
        assert len(await road.queue("dead").take(5, timedelta())) == 2
        await one.db.write(lambda conn: executions.request_cancel(conn, done, "test", CLOCK.now()))
        async with one.running():
            await until(lambda: one.target.ran == [open_], "the open one", seconds=5)
            await until(lambda: len(road) == 0, "an empty road", seconds=6)  # the finished one vanished
        assert one.engine.counters.rescued == 0
        assert heard.again == [(Lane.HIGH, 1)]


async def test_what_runs_on_a_living_lease_is_left_alone(db_url: str) -> None:
    """Promise 2: idle time on the road is no proof that somebody is dead."""
    road, target, lease = a_road(), Target(takes=5), timedelta(seconds=2)
    async with (
        machine(db_url, queue=road.queue, target=target, lease=lease) as one,
        machine(db_url, queue=road.queue, target=target, lease=lease) as two,
        one.running(),
        two.running(),
    ):
        await force(one.db, await add(one.db))
        await until(lambda: len(target.ran) == 1, "it runs")
        (message,) = road.held()
        holder, began = message.holder, message.touched_at
        await until(lambda: message.touched_at - began > 2.5, "its holder keeps it")
        assert (message.holder, len(road)) == (holder, 1)
        (run,) = await settled(one.db, 1)
        assert (run.state, run.attempt) == (ExecutionState.COMPLETED, 1)
        assert len(target.ran) == 1
        await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_a_killed_instance_delays_its_runs_by_its_lease_and_the_road_ends_empty(db_url: str) -> None:
    road, lease = a_road(), timedelta(seconds=3)  # longer than a busy machine stands still
    async with (
        machine(db_url, queue=road.queue, target=Target(takes=60), lease=lease) as one,
        machine(db_url, queue=road.queue, lease=lease) as two,
    ):
        job = await add(one.db)
        async with one.running():
            execution_ids = await force(one.db, job, 3)
            await until(lambda: len(one.target.ran) == 3, "they run at the first")
        async with two.running():
            found = await settled(two.db, 3, seconds=20)
            assert completed(found) == 3
            assert sorted(two.target.ran) == sorted(execution_ids)
            assert {(run.attempt, run.losses) for run in found} == {(2, 1)}
            await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_a_lost_acknowledgement_is_harmless(db_url: str) -> None:
    road, lease = a_road(), timedelta(seconds=2)
    road.faults = Faults(lose_acks=1.0)
    async with machine(db_url, queue=road.queue, lease=lease) as one, one.running():
        await force(one.db, await add(one.db), 5)
        await settled(one.db, 5)
        assert len(road) == 5
        road.behave()
        await until(lambda: len(road) == 0, "an empty road", seconds=10)
        assert len(one.target.ran) == 5


async def test_a_run_that_goes_on_elsewhere_lives_by_its_heartbeats_and_not_on_the_road(db_url: str) -> None:
    road = a_road()
    elsewhere = Target(outcome=lambda run: Accepted(heartbeat=timedelta(minutes=5)))
    async with machine(db_url, queue=road.queue, target=elsewhere) as one, one.running():
        await force(one.db, await add(one.db))
        await until(lambda: len(elsewhere.ran) == 1, "it was given away")
        await until(lambda: len(road) == 0, "an empty road", seconds=6)
        (run,) = await rows(one.db)
        assert (run.state, run.remote) == (ExecutionState.RUNNING, True)


async def test_overdue_rows_on_an_empty_road_are_found_by_whoever_is_idle(db_url: str) -> None:
    """Nobody leads: force runs and retries of version 2 do not wait for the next election."""
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER) as one, one.running():
        job = await add(one.db)
        await force(one.db, job)
        await pledged(one, job)
        await until(lambda: len(one.target.ran) == 2, "both", seconds=15)
        assert min(one.target.late) >= 3
        assert one.engine.counters.rescued == 2


async def test_messages_are_counted_as_they_are_taken(db_url: str) -> None:
    road, heard = a_road(), Heard()
    async with by_hand(db_url, road) as one:
        one.engine.taker._telemetry = heard
        high, low = await add(one.db, lane=Lane.HIGH), await add(one.db, lane=Lane.LOW)
        for job in (high, high, low):
            await put(one, road, job)
        await one.engine.taker.run_once()
        assert (heard.taken, heard.again) == ([(Lane.HIGH, 2), (Lane.LOW, 1)], [])
        await until(lambda: len(one.target.ran) == 3, "all of them")


async def test_one_read_takes_no_more_messages_than_it_is_told_to(db_url: str) -> None:
    road, heard = a_road(), Heard()
    async with by_hand(db_url, road, queue_batch=2) as one:
        one.engine.taker._telemetry = heard
        job = await add(one.db)
        for _ in range(3):
            await put(one, road, job)
        await one.engine.taker.run_once()
        assert heard.taken == [(Lane.NORMAL, 2), (Lane.NORMAL, 1)]
        assert one.engine.counters.claimed == 3


async def test_what_is_kept_counts_when_more_is_read_and_is_no_reason_for_a_rescue(db_url: str) -> None:
    road, heard = a_road(), Heard()
    async with by_hand(db_url, road, slots=2) as one:
        one.engine.taker._telemetry = heard
        job = await add(one.db)
        for _ in range(3):
            await put(one, road, job, ahead=0.005)
        one.engine.taker._config = replace(one.engine.taker._config, lead=timedelta())
        await one.engine.taker.run_once()
        await one.engine.taker.run_once()
        assert sum(count for _, count in heard.taken) == 2
        assert one.engine.counters.rescued == 0


async def test_a_row_locked_by_another_transaction_is_asked_for_again(postgres_url: str) -> None:
    road = a_road()
    other = Database(postgres_url)
    try:
        async with machine(postgres_url, queue=road.queue, roles=WORKER) as one, one.running():
            job = await add(one.db)
            parcel = await pledged(one, job)
            locked, free = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def hold(conn: Any) -> None:
                conn.exec_driver_sql(f"SELECT 1 FROM jobs WHERE id = '{job.id}' FOR UPDATE")
                loop.call_soon_threadsafe(locked.set)
                asyncio.run_coroutine_threadsafe(free.wait(), loop).result(20)

            holding = asyncio.create_task(other.write(hold))
            await locked.wait()
            await road.queue("leader").put([parcel])
            await until(lambda: len(road.held()) == 1, "it is kept")
            await asyncio.sleep(0.2)
            assert not one.target.ran
            free.set()
            await holding
            await until(lambda: one.target.ran == [parcel.execution_id], "the run", seconds=5)
    finally:
        await other.close()
