"""Claims that wait for their moment: given out at it or behind it, never before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.schedule import Once
from noonday.engine.coming import Coming
from noonday.engine.crowds import NEAR
from noonday.engine.held import Held
from noonday.engine.pace import Lead
from noonday.ports import Claim
from noonday.testing import ManualInstance
from tests.factories import NOON, a_job, an_execution

MS = timedelta(milliseconds=1)


class SlowClock:
    """A wall clock that somebody set back: it comes to each moment later than the loop's timers do."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.behind = timedelta(milliseconds=5)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self._loop.time() - self._began) - self.behind

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        raise NotImplementedError


def held(due: datetime) -> Held:
    job = a_job()
    execution: Execution = an_execution(job=job, scheduled_for=due)
    return Held(claim=Claim(job, execution), trusted_until=1e9, waiting_since=0.0)


class Given:
    def __init__(self, clock: SlowClock, wanted: int) -> None:
        self._clock = clock
        self._wanted = wanted
        self.came: list[tuple[Held, datetime]] = []
        self.all = asyncio.Event()

    def come(self, due: Sequence[Held]) -> None:
        self.came += [(one, self._clock.now()) for one in due]
        if len(self.came) >= self._wanted:
            self.all.set()


async def test_each_comes_at_its_moment_and_none_before() -> None:
    clock = SlowClock()
    moments = [NOON + n * 7 * MS for n in (5, 1, 3, 2, 4)]
    given = Given(clock, len(moments))
    coming = Coming(clock, given.come)
    assert coming.add([held(at) for at in moments]) == []
    assert len(coming) == 5
    clock.behind += timedelta(milliseconds=20)  # while they wait
    await asyncio.wait_for(given.all.wait(), 20)
    assert [one.claim.execution.available_at for one, _ in given.came] == sorted(moments)
    assert all(at >= (one.claim.execution.available_at or at) for one, at in given.came)
    assert len(coming) == 0


async def test_what_is_due_already_does_not_wait() -> None:
    clock = SlowClock()
    coming = Coming(clock, Given(clock, 1).come)
    late = held(NOON - timedelta(seconds=1))
    assert coming.add([late, held(NOON + timedelta(hours=1))]) == [late]
    assert len(coming) == 1


async def test_all_can_be_taken_back() -> None:
    clock = SlowClock()
    given = Given(clock, 1)
    coming = Coming(clock, given.come)
    later, sooner = held(NOON + 20 * MS), held(NOON + 10 * MS)
    coming.add([later, sooner])
    assert coming.clear() == [sooner, later]
    coming.add([last := held(NOON + 40 * MS)])
    await asyncio.wait_for(given.all.wait(), 20)
    assert [one for one, _ in given.came] == [last]


def test_the_lead_follows_the_claims_within_its_bounds() -> None:
    lead = Lead(100 * MS)
    assert lead.span == 10 * MS
    lead.took(0.02, 1000.0)
    assert lead.span == 80 * MS
    lead.took(5.0, 1001.0)
    assert lead.span == 100 * MS
    for second in range(1002, 1100):
        lead.took(0.001, second)
    assert lead.span == 10 * MS
    assert Lead(timedelta()).span == timedelta()


@pytest.mark.parametrize("claims", [1, 200])
def test_a_database_that_stood_still_may_do_so_again(claims: int) -> None:
    """It is remembered for some seconds, however many claims were quick meanwhile: the next time the runs of
    that while are in hand already."""
    lead, stall = Lead(NEAR), 0.1
    lead.took(stall, 1000.0)
    for claim in range(1, claims + 1):
        lead.took(0.004, 1000.0 + 4 * claim / claims)
    assert lead.wake.total_seconds() > stall
    lead.took(0.004, 1060.0)
    assert lead.span == 16 * MS


async def test_behind_a_stall_the_worker_comes_earlier(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scheduler.engine.worker
    worker._lead = Lead(NEAR)
    moment = scheduler.clock.now() + timedelta(seconds=1)
    await scheduler.add("soon", Once(run_at=moment), "work")
    await scheduler.engine.planner.run_once()
    assert await worker.run_once() == moment - 5 * MS
    claim = worker._meetings.claim

    async def stalled(*args: Any) -> Any:
        scheduler.clock.advance(milliseconds=90)
        return await claim(*args)

    monkeypatch.setattr(worker._meetings, "claim", stalled)
    assert await worker.run_once() == moment - 180 * MS


@pytest.fixture
async def ran(scheduler: ManualInstance) -> list[datetime]:
    """When it ran: one that is claimed and due in five milliseconds."""
    starts: list[datetime] = []

    @scheduler.task
    async def work() -> None:
        starts.append(scheduler.clock.now())

    scheduler.engine.worker._lead = Lead(100 * MS)
    await scheduler.add("soon", Once(run_at=scheduler.clock.now() + 5 * MS), "work")
    await scheduler.engine.planner.run_once()
    await scheduler.engine.worker.run_once()
    assert (await only(scheduler)).state is ExecutionState.RUNNING
    assert scheduler.engine.slots.waiting == 1
    return starts


async def drained(scheduler: ManualInstance, draining: asyncio.Task[None]) -> None:
    async with asyncio.timeout(20):
        while not draining.done():
            await scheduler.engine.settler.run_once()
            await asyncio.sleep(0)


async def test_a_drain_lets_what_waits_for_its_moment_start_at_it(
    scheduler: ManualInstance, ran: list[datetime]
) -> None:
    """Given back, it would start when somebody else hears of it: on SQLite up to a second later."""
    due = scheduler.clock.now() + 5 * MS
    draining = asyncio.create_task(scheduler.engine.slots.drain())
    await asyncio.sleep(0.02)  # longer than it would take to be given back
    assert not draining.done()
    assert not ran
    scheduler.clock.advance(seconds=0.005)
    await drained(scheduler, draining)
    assert ran == [due]
    assert (await only(scheduler)).state is ExecutionState.COMPLETED


async def test_a_drain_without_patience_gives_back_what_waits_for_its_moment(
    scheduler: ManualInstance, ran: list[datetime]
) -> None:
    due = scheduler.clock.now() + 5 * MS
    draining = asyncio.create_task(scheduler.engine.slots.drain())
    await asyncio.sleep(0)
    scheduler.engine.slots.release()
    await drained(scheduler, draining)
    run = await only(scheduler)
    assert (run.state, run.available_at, ran) == (ExecutionState.QUEUED, due, [])


async def only(scheduler: ManualInstance) -> Execution:
    [run] = await scheduler.history("soon")
    return run
