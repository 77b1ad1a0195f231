"""The settler: many endings in one commit, none lost by a failing store, none held back by a bad one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from noonday.domain.errors import Unavailable
from noonday.domain.execution import ExecutionState
from noonday.domain.job import RetryPolicy
from noonday.domain.outcome import Completed, Result
from noonday.domain.schedule import Immediate
from noonday.store import executions, history
from noonday.store.database import CommitUnknown
from noonday.store.executions import Ending, Ends
from noonday.testing import ManualInstance

T = TypeVar("T")
Work = Callable[[Connection], T]


class Flaky:
    """A database that fails the next writes of one verb, before or after they were committed."""

    def __init__(self, scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
        self.failures: list[Exception] = []
        self.commits = 0
        self._verb = verb
        self._write = scheduler.db.write
        monkeypatch.setattr(scheduler.db, "write", self.write)

    async def write(self, work: Work[T], **how: bool) -> T:
        if getattr(getattr(work, "func", work), "__name__", "") != self._verb:
            return await self._write(work, **how)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None and not isinstance(failure, CommitUnknown):
            raise failure
        result = await self._write(work, **how)
        self.commits += 1
        if failure is not None:
            raise failure
        return result


@pytest.fixture
def flaky(scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch) -> Flaky:
    return Flaky(scheduler, monkeypatch, "settle_held")


async def start(scheduler: ManualInstance, count: int, **fields: Any) -> None:
    for number in range(count):
        await scheduler.add(f"job-{number}", Immediate(), "work", **fields)
    await scheduler.engine.planner.run_once()
    await scheduler.engine.worker.run_once()


async def until_waiting(scheduler: ManualInstance, count: int) -> None:
    async with asyncio.timeout(20):
        while len(scheduler.engine.settler) < count:
            await asyncio.sleep(0)


async def states(scheduler: ManualInstance) -> list[ExecutionState]:
    page = await scheduler.db.read(lambda conn: history.page(conn, limit=100))
    return [run.state for run in page.items]


async def test_it_settles_all_that_wait_in_one_commit(scheduler: ManualInstance, flaky: Flaky) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await start(scheduler, 10)
    await until_waiting(scheduler, 10)
    await scheduler.engine.settler.run_once()
    assert flaky.commits == 1
    assert scheduler.engine.counters.settled == 10
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 10


async def test_it_gathers_the_next_group_while_one_is_being_committed(
    scheduler: ManualInstance, flaky: Flaky
) -> None:
    """The longer a commit takes, the more go into the next."""

    @scheduler.task
    async def work() -> None:
        pass

    await start(scheduler, 10)
    await until_waiting(scheduler, 10)
    settler = scheduler.engine.settler
    waiting = list(settler._waiting)
    settler._waiting.clear()
    settler._waiting.append(waiting[0])
    settling = asyncio.create_task(settler.run_once())
    await asyncio.sleep(0)
    settler._waiting.extend(waiting[1:])
    async with asyncio.timeout(20):
        assert await settling == timedelta(), "it comes again for those that came meanwhile"
        assert flaky.commits == 1
        assert await settler.run_once() is None
    assert flaky.commits == 2
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 10


async def test_no_more_is_claimed_while_many_ends_wait_to_be_durable(scheduler: ManualInstance) -> None:
    """After a crash all of these would run once more."""
    begun: list[str] = []

    @scheduler.task
    async def work() -> None:
        begun.append("")

    slots, settler, worker = scheduler.engine.slots, scheduler.engine.settler, scheduler.engine.worker
    slots.most = 2  # so it ends at eleven
    await start(scheduler, 30)
    await until_waiting(scheduler, 2)
    lent = settler.lend()  # so that no claim takes any along
    for done in range(4, 14, 2):
        await worker.run_once()
        await until_waiting(scheduler, done)
    assert slots.room == 0
    worker.wake.clear()
    await worker.run_once()
    assert len(begun) == len(settler) == 12

    settler.take_back(lent)
    settler._batch, settler._waiting[0].tried = 1, False
    lent = settler.lend()
    settler.carried(lent, await scheduler.db.write(settler.work(lent)))
    await asyncio.sleep(0)
    assert worker.wake.is_set(), "there is room again, and it is told"
    assert (slots.room, len(settler)) == (1, 11), "one for one"
    await worker.run_once()
    await until_waiting(scheduler, 12)
    assert slots.room == 0

    settler._batch = 500
    await settler.run_once()
    assert slots.room == 2
    await worker.run_once()
    await until_waiting(scheduler, 2)
    assert len(begun) == 15


async def test_it_tells_that_an_ending_is_durable_only_once_it_is(
    scheduler: ManualInstance, flaky: Flaky
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    flaky.failures = [Unavailable("the database is away")]
    await start(scheduler, 1)
    await until_waiting(scheduler, 1)
    settler = scheduler.engine.settler
    with pytest.raises(Unavailable):
        await settler.run_once()
    assert len(settler) == 1
    assert len(scheduler.engine.leases) == 1  # still held, still renewed
    await settler.run_once()
    assert len(settler) == len(scheduler.engine.leases) == 0


async def test_it_loses_no_result_when_the_store_fails_in_the_middle(
    scheduler: ManualInstance, flaky: Flaky
) -> None:
    ran: list[int] = []

    @scheduler.task
    async def work() -> int:
        ran.append(1)
        return 42

    broken = OperationalError("COMMIT", {}, Exception("server closed the connection"))
    flaky.failures = [Unavailable("away"), broken, OSError("still away"), broken]
    motion = asyncio.create_task(scheduler.engine.settler.run())
    await start(scheduler, 10)
    async with asyncio.timeout(30):
        while scheduler.engine.counters.settled < 10:
            await asyncio.sleep(0.01)
    motion.cancel()
    assert len(ran) == 10
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 10
    assert flaky.commits == 1


async def test_it_knows_its_own_commit_when_only_the_answer_was_lost(
    scheduler: ManualInstance, flaky: Flaky
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    flaky.failures = [CommitUnknown()]
    await start(scheduler, 3)
    await until_waiting(scheduler, 3)
    settler = scheduler.engine.settler
    with pytest.raises(Unavailable):
        await settler.run_once()
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 3  # it was committed after all
    await settler.run_once()
    assert (scheduler.engine.counters.settled, scheduler.engine.counters.refused) == (3, 0)


async def test_it_keeps_a_result_beyond_the_end_of_its_lease_as_long_as_nobody_took_it(
    scheduler: ManualInstance, flaky: Flaky
) -> None:
    """What was done is in the history: an outage longer than the lease must not make it run again."""

    @scheduler.task
    async def work() -> str:
        return "done"

    flaky.failures = [Unavailable("away")]
    await start(scheduler, 1)
    await until_waiting(scheduler, 1)
    with pytest.raises(Unavailable):
        await scheduler.engine.settler.run_once()
    scheduler.clock.advance(minutes=5)
    await scheduler.engine.recoverer.run_once()  # ours, and not lost
    await scheduler.run_once()
    [run] = await scheduler.history("job-0")
    assert (run.state, run.attempt, run.result.value) == (ExecutionState.COMPLETED, 1, "done")


async def test_it_does_not_let_one_ending_hold_back_the_others(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    poison: set[str] = set()

    original = executions.settle_held

    def patched(conn: Connection, endings: list[Ending], now: Any, **more: Any) -> Any:
        if any(e.execution_id in poison and isinstance(e.outcome, Completed) for e in endings):
            raise ValueError("this result cannot be written")
        return original(conn, endings, now, **more)

    monkeypatch.setattr("noonday.engine.settler.executions.settle_held", patched)
    await start(scheduler, 5, retry=RetryPolicy(max_retries=0))
    await until_waiting(scheduler, 5)
    poison.add(scheduler.engine.settler._waiting[2].ending.execution_id)
    await scheduler.engine.settler.run_once()
    assert sorted(await states(scheduler)) == ["completed"] * 4 + ["failed"]
    page = await scheduler.db.read(lambda conn: history.page(conn, status=ExecutionState.FAILED))
    [failed] = page.items
    assert failed.error is not None
    assert "this result cannot be written" in failed.error


async def test_it_stores_what_postgres_would_refuse(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> str:
        return "a\x00b"

    await scheduler.add("nul", Immediate(), "work", retry=RetryPolicy(max_retries=0))
    await scheduler.run_once()
    [run] = await scheduler.history("nul")
    assert run.state in (ExecutionState.COMPLETED, ExecutionState.FAILED)


@pytest.mark.parametrize("by_its_runner", [False, True])
async def test_it_refuses_an_ending_with_a_wrong_token(
    scheduler: ManualInstance, by_its_runner: bool
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(10)

    await start(scheduler, 1)
    [held] = scheduler.engine.leases
    settler = scheduler.engine.settler
    ending = Ending(
        execution_id=held.id,
        token="stolen",
        outcome=Completed(result=Result(value="mine")),
        claim=held.claim if by_its_runner else None,
    )
    answers: list[bool] = []
    settler.offer(ending, attempt=1, then=answers.append)
    await settler.run_once()
    assert answers == [False]
    assert await states(scheduler) == [ExecutionState.RUNNING]


async def test_what_is_left_goes_on_waiting_and_is_waited_for_in_the_end(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds a job whenever its end is told; the others do not wait for it."""

    @scheduler.task
    async def work() -> None:
        pass

    original = executions.settle_held
    waited: list[bool] = []
    busy: list[str] = []

    def patched(conn: Connection, endings: list[Ending], now: Any, *, wait: bool, **more: Any) -> Ends:
        waited.append(wait)
        free = [one for one in endings if wait or one.execution_id not in busy]
        done, _ = original(conn, free, now, wait=wait, **more)
        return Ends(done, {one.execution_id for one in endings} - {one.execution_id for one in free})

    monkeypatch.setattr("noonday.engine.settler.executions.settle_held", patched)
    await start(scheduler, 3)
    await until_waiting(scheduler, 3)
    settler = scheduler.engine.settler
    busy.append(settler._waiting[1].ending.execution_id)
    await settler.run_once()
    assert sorted(await states(scheduler)) == ["completed", "completed", "running"]
    assert [one.ending.execution_id for one in settler._waiting] == busy
    assert scheduler.engine.counters.refused == 0
    while len(settler):
        await settler.run_once()
    assert waited == [False] * 10 + [True]
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 3
    await asyncio.wait_for(settler.drained(), 10)
    assert scheduler.engine.counters.settled == 3


async def test_a_claim_that_took_ends_along_leaves_what_it_could_not_settle(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await start(scheduler, 3)
    await until_waiting(scheduler, 3)
    settler = scheduler.engine.settler
    lent = settler.lend()
    first, second, third = (one.ending.execution_id for one in lent)
    ends = await scheduler.db.write(settler.work([lent[0], lent[2]]))
    settler.carried(lent, Ends(ends.settled, {second}))
    assert [one.ending.execution_id for one in settler._waiting] == [second]
    await settler.run_once()
    assert {first, third} == ends.settled
    assert await states(scheduler) == [ExecutionState.COMPLETED] * 3
