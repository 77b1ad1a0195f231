"""A claim takes along what has ended, where both would meet at the same jobs: in one commit or in none."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.domain.errors import Unavailable
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Overlap, OverlapPolicy
from noonday.domain.schedule import Manual
from noonday.store import history
from noonday.store.database import CommitUnknown
from noonday.store.executions import Ending, FrontAhead, settle_held
from noonday.testing import ManualInstance
from tests.engine.test_settling_groups import Flaky, until_waiting

RUNS = 12  # of one job, more than there are slots
BOTH = "_both"


@pytest.fixture
async def ran(scheduler: ManualInstance) -> list[str]:
    """A backlog of one job whose runs may overlap; those in the slots have ended and are not settled."""
    begun: list[str] = []

    @scheduler.task
    async def work() -> None:
        begun.append("")

    job = await scheduler.add("busy", Manual(), "work", overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
    for _ in range(RUNS):
        await scheduler.jobs.force_run(job.id)
    await scheduler.engine.worker.run_once()
    await until_waiting(scheduler, 10)
    return begun


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each claim that might have been worked out beside ends: was it?"""
    told: list[bool] = []

    class Watched(FrontAhead):
        def claims(self) -> Any:
            made = super().claims()
            told.append(made is not None)
            return made

    monkeypatch.setattr("noonday.engine.worker.executions.FrontAhead", Watched)
    return told


async def counted(scheduler: ManualInstance) -> dict[str, int]:
    page = await scheduler.db.read(lambda conn: history.page(conn, limit=100))
    return dict(Counter(run.state.value for run in page.items))


def meet(scheduler: ManualInstance) -> None:
    scheduler.engine.worker._meetings.noted()


async def test_both_are_one_commit(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together, apart = Flaky(scheduler, monkeypatch, BOTH), Flaky(scheduler, monkeypatch, "settle_held")
    meet(scheduler)
    await scheduler.engine.worker.run_once()
    await asyncio.sleep(0)  # what follows is seen to when the next claim may be on its way
    assert (together.commits, apart.commits) == (1, 0)
    assert scheduler.engine.counters.settled == 10
    assert await counted(scheduler) == {"completed": 10, "running": 2}
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": RUNS}
    assert len(ran) == RUNS


async def test_claims_are_worked_out_while_the_ends_are_written(
    scheduler: ManualInstance, ran: list[str], beside: list[bool]
) -> None:
    meet(scheduler)
    await scheduler.engine.worker.run_once()
    assert beside == [True]
    assert await counted(scheduler) == {"completed": 10, "running": 2}
    await until_waiting(scheduler, 2)
    assert len(ran) == RUNS


async def test_where_that_was_in_vain_claims_wait_for_the_ends_for_a_while(
    scheduler: ManualInstance, ran: list[str], beside: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is due belongs to a job whose runs must not overlap: who may start is known behind the ends."""
    together = Flaky(scheduler, monkeypatch, BOTH)
    for name in ("first", "second"):
        await scheduler.jobs.force_run((await scheduler.add(name, Manual(), "work")).id)
    meet(scheduler)
    await scheduler.engine.worker.run_once()
    await until_waiting(scheduler, 4)  # the last two of the backlog, and these
    await scheduler.jobs.force_run("busy")
    await scheduler.engine.worker.run_once()
    await until_waiting(scheduler, 1)
    assert (together.commits, beside) == (2, [False])
    scheduler.clock.advance(seconds=1.1)
    await scheduler.jobs.force_run("busy")
    meet(scheduler)
    await scheduler.engine.worker.run_once()
    assert (together.commits, beside) == (3, [False, True])
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": RUNS + 4}


async def test_nobody_takes_anything_along_while_they_do_not_meet(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Flaky(scheduler, monkeypatch, BOTH)
    scheduler.clock.advance(seconds=2)  # a backlog on SQLite was a meeting
    await scheduler.engine.worker.run_once()
    assert together.commits == 0
    assert len(scheduler.engine.settler) >= 10
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": RUNS}


async def test_where_one_writes_at_a_time_a_backlog_is_a_meeting(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims and ends wait for each other anyway, and together they wait for the disk but once."""
    together = Flaky(scheduler, monkeypatch, BOTH)
    await scheduler.engine.worker.run_once()  # the claim before it got all that it asked for
    assert together.commits == int(scheduler.db.one_writer)


async def test_the_habit_lasts_as_long_as_they_would_have_met(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Flaky(scheduler, monkeypatch, BOTH)
    meet(scheduler)
    scheduler.clock.advance(seconds=0.9)
    await scheduler.engine.worker.run_once()  # it claims of the job whose ends it took along
    await until_waiting(scheduler, 2)
    scheduler.clock.advance(seconds=0.9)
    await scheduler.engine.worker.run_once()  # nothing is left to claim
    assert together.commits == 2
    scheduler.clock.advance(seconds=1.1)
    await scheduler.engine.worker.run_once()
    assert together.commits == 2


@pytest.mark.parametrize("failure", [Unavailable("away"), OSError("gone")])
async def test_a_failure_loses_neither(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    Flaky(scheduler, monkeypatch, BOTH).failures = [failure]
    meet(scheduler)
    with pytest.raises(type(failure)):
        await scheduler.engine.worker.run_once()
    assert len(scheduler.engine.settler) == 10
    assert scheduler.engine.settler.lend() == [], "what became of these the settler finds out"
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": RUNS}
    assert len(ran) == RUNS


async def test_a_commit_whose_answer_was_lost_is_known_again(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Flaky(scheduler, monkeypatch, BOTH).failures = [CommitUnknown()]
    meet(scheduler)
    with pytest.raises(Unavailable):
        await scheduler.engine.worker.run_once()
    assert await counted(scheduler) == {"completed": 10, "running": 2}  # it was made after all
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": RUNS}
    assert scheduler.engine.counters.refused == 0
    assert len(ran) == RUNS


async def test_an_ending_that_cannot_be_kept_holds_back_neither_ends_nor_claims(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = scheduler.engine.settler._waiting[3].ending

    def refusing(conn: Connection, endings: list[Ending], now: Any, **more: Any) -> Any:
        if poison in endings:
            raise ValueError("this cannot be written")
        return settle_held(conn, endings, now, **more)

    monkeypatch.setattr("noonday.engine.settler.executions.settle_held", refusing)
    meet(scheduler)
    with pytest.raises(ValueError, match="cannot be written"):
        await scheduler.engine.worker.run_once()
    await scheduler.engine.settler.run_once()
    assert await counted(scheduler) == {"completed": 9, "failed": 1, "queued": 2}
    await scheduler.run_once()
    assert await counted(scheduler) == {"completed": 11, "failed": 1}


async def test_ends_wait_for_a_claim_only_for_a_moment(
    scheduler: ManualInstance, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settler = scheduler.engine.settler
    settler._company = company = timedelta(milliseconds=50)
    meet(scheduler)
    await scheduler.engine.worker.run_once()
    await until_waiting(scheduler, 2)
    assert await settler.run_once() == company
    assert len(settler) == 2
    scheduler.clock.advance(seconds=0.06)
    assert await settler.run_once() is None
    assert await counted(scheduler) == {"completed": RUNS}


async def test_what_ends_while_a_claim_is_on_its_way_is_left_to_it_or_the_next(
    scheduler: ManualInstance, ran: list[str]
) -> None:
    settler = scheduler.engine.settler
    lent = settler.lend()
    assert len(lent) == 10
    assert settler.lend() == []
    asking = asyncio.create_task(settler.run_once())
    await asyncio.sleep(0)
    assert len(settler) == 10, "somebody has them"
    settler.take_back(lent)
    await asking
    await settler.run_once()
    assert (await counted(scheduler))[ExecutionState.COMPLETED.value] == 10
