"""The promises of docs/architecture.md, each broken on purpose, on SQLite and on PostgreSQL.

Time is moved by hand, so that a killed instance, a paused zombie or an outage of hours costs no waiting.
The same promises are put to real processes in tests/crash.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from noonday.domain.errors import MoveRefused, Unavailable
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import CatchUp, MisfirePolicy, Overlap, OverlapPolicy
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.store.database import CommitUnknown
from noonday.testing import ManualInstance
from tests.promises.diary import EVERY_TEN, Diary, accounted, due_so_far


class TestPromise1NoDueInstantIsLost:
    @pytest.mark.parametrize("catch_up", list(CatchUp))
    @pytest.mark.parametrize("coalesce", [True, False])
    async def test_an_outage_ends_as_configured(
        self, scheduler: ManualInstance, diary: Diary, catch_up: CatchUp, coalesce: bool
    ) -> None:
        misfire = MisfirePolicy(grace=timedelta(seconds=45), coalesce=coalesce, catch_up=catch_up)
        job = await scheduler.add(
            "steady", EVERY_TEN, "work", misfire=misfire, overlapping=OverlapPolicy(overlap=Overlap.QUEUE)
        )
        await scheduler.tick(seconds=35)
        await scheduler.kill()
        scheduler.clock.advance(minutes=10)
        await scheduler.restart()
        await scheduler.tick(seconds=31)

        rows = await scheduler.history("steady")
        due = due_so_far(job, scheduler)
        accounted(rows, due)
        assert all(
            row.state is ExecutionState.COMPLETED
            for row in rows
            if row.skip_reason is None and row.scheduled_for in due
        )
        missed = [
            at
            for at in due
            if job.created_at + timedelta(seconds=40)
            <= at
            <= job.created_at + timedelta(minutes=10, seconds=33)
        ]
        fired = {row.scheduled_for for row in rows if row.skip_reason is None}
        expected = {
            (CatchUp.ALL, True): len(missed),
            (CatchUp.ALL, False): len(missed),
            (CatchUp.LATEST, True): 1,
            (CatchUp.LATEST, False): 1,
            (CatchUp.NONE, True): 1,
            (CatchUp.NONE, False): 5,
        }[catch_up, coalesce]
        assert len(fired & set(missed)) == expected

    async def test_killed_in_the_middle_of_runs_again_and_again(
        self, scheduler: ManualInstance, diary: Diary
    ) -> None:
        diary.takes = 4
        job = await scheduler.add(
            "steady",
            EVERY_TEN,
            "work",
            misfire=MisfirePolicy(grace=timedelta(hours=1), coalesce=False),
            overlapping=OverlapPolicy(overlap=Overlap.QUEUE),
        )
        for _ in range(5):
            await scheduler.tick(seconds=12)
            await scheduler.kill()
            await scheduler.restart()
        await scheduler.tick(minutes=3)

        rows = await scheduler.history("steady")
        accounted(rows, due_so_far(job, scheduler))
        done = [row for row in rows if row.scheduled_for <= scheduler.clock.now() - timedelta(seconds=15)]
        assert done
        assert {row.state for row in done} == {ExecutionState.COMPLETED}
        assert {row.id for row in done} <= set(diary.ended)
        assert any(row.losses for row in done), "no run was hit by a kill: the test proves nothing"

    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["tick", "kill", "pause", "stand still", "resume"]), st.integers(1, 200)
            ),
            max_size=12,
        ),
        st.sampled_from(list(CatchUp)),
        st.sampled_from(list(Overlap)),
        st.booleans(),
    )
    async def test_whatever_happens(
        self, story: list[tuple[str, int]], catch_up: CatchUp, overlap: Overlap, coalesce: bool
    ) -> None:
        async with ManualInstance(lease=timedelta(seconds=20)) as scheduler:
            diary = Diary(scheduler, takes=7)
            scheduler.task(diary.work)
            job = await scheduler.add(
                "job",
                EVERY_TEN,
                "work",
                misfire=MisfirePolicy(grace=timedelta(seconds=30), coalesce=coalesce, catch_up=catch_up),
                overlapping=OverlapPolicy(overlap=overlap),
            )
            for step, seconds in story:
                match step:
                    case "tick":
                        await scheduler.tick(seconds=seconds)
                    case "kill":
                        await scheduler.kill()
                        scheduler.clock.advance(seconds=seconds)
                        await scheduler.restart()
                    case "stand still":
                        scheduler.clock.advance(seconds=seconds)
                    case "pause":
                        await _if_allowed(scheduler.jobs.pause)
                    case _:
                        await _if_allowed(scheduler.jobs.resume)
            await _if_allowed(scheduler.jobs.resume)
            await scheduler.tick(minutes=5)
            accounted(await scheduler.history("job"), due_so_far(job, scheduler))


class TestPromise2NeverOnTwoLiveLeases:
    async def test_a_paused_zombie_is_taken_over_and_changes_nothing(
        self, scheduler: ManualInstance, diary: Diary
    ) -> None:
        diary.takes = 50
        async with scheduler.another() as second:
            await scheduler.add("long", Interval(count=1, unit=IntervalUnit.HOURS), "work")
            second.pause()
            await scheduler.tick(hours=1, seconds=1)
            assert len(diary.begun) == 1
            scheduler.pause()
            second.resume()
            await second.tick(seconds=29)
            assert len(diary.begun) == 1, "taken over before the lease was dead"
            await second.tick(seconds=100)
            scheduler.resume()
            await scheduler.tick(seconds=5)

            [row] = [row for row in await scheduler.history("long") if row.state is not ExecutionState.QUEUED]
            assert row.state is ExecutionState.COMPLETED
            assert row.instance_id == "manual-2"
            assert [attempt.outcome for attempt in await scheduler.attempts(row)] == ["lost", "completed"]
            (first, began), (again, taken) = diary.begun
            assert first == again == row.id
            assert taken - began >= timedelta(seconds=30)
            assert scheduler.engine.counters.lease_losses + scheduler.engine.counters.refused >= 1

    async def test_many_instances_share_the_work_without_a_double(
        self, scheduler: ManualInstance, diary: Diary
    ) -> None:
        async with scheduler.another("b") as second, second.another("c"):
            for number in range(60):
                await scheduler.add(f"job {number}", EVERY_TEN, "work")
            await scheduler.tick(seconds=31)
        runs = [run for run, _ in diary.begun]
        assert len(runs) == len(set(runs)) == 180


class TestPromise3WhatWasReportedWasDone:
    @pytest.mark.parametrize("lost_answer", [True, False])
    async def test_the_database_fails_around_the_commit(
        self, scheduler: ManualInstance, diary: Diary, monkeypatch: pytest.MonkeyPatch, lost_answer: bool
    ) -> None:
        """With `lost_answer` the settling commits and its answer never comes; else it never happens."""
        await scheduler.add("job", EVERY_TEN, "work")
        real, failures = scheduler.db.write, [3]

        async def write(work: Callable[[Connection], object], **how: bool) -> object:
            if failures[0] and "settle" in repr(work):
                failures[0] -= 1
                if lost_answer:
                    await real(work, **how)
                    raise CommitUnknown
                raise Unavailable("the server closed the connection")
            return await real(work, **how)

        monkeypatch.setattr(scheduler.db, "write", write)
        for _ in range(12):
            try:
                await scheduler.tick(seconds=2.5)
            except Unavailable:
                continue
        rows = [row for row in await scheduler.history("job") if row.state is not ExecutionState.QUEUED]
        assert failures == [0]
        assert len(rows) >= 2
        assert all(row.state is ExecutionState.COMPLETED for row in rows)
        assert sorted(diary.ended) == sorted(row.id for row in rows), (
            "done and told must be the same, once each"
        )


class TestPromise4NoOverlapWhereForbidden:
    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_ONE, Overlap.REPLACE])
    @pytest.mark.parametrize("most", [1, 2])
    async def test_three_instances_and_a_run_longer_than_its_interval(
        self, scheduler: ManualInstance, diary: Diary, overlap: Overlap, most: int
    ) -> None:
        diary.takes = 37
        async with scheduler.another("b") as second, second.another("c"):
            job = await scheduler.add(
                "slow", EVERY_TEN, "work", overlapping=OverlapPolicy(overlap=overlap, max_instances=most)
            )
            await scheduler.tick(minutes=5)
            rows = await scheduler.history("slow")
        assert diary.most_running == most
        accounted(rows, due_so_far(job, scheduler))
        if overlap is Overlap.SKIP:
            assert any(row.skip_reason is SkipReason.OVERLAP for row in rows)
        if overlap is Overlap.REPLACE:
            assert any(row.state is ExecutionState.CANCELLED for row in rows)

    async def test_allow_lets_them(self, scheduler: ManualInstance, diary: Diary) -> None:
        diary.takes = 37
        await scheduler.add("slow", EVERY_TEN, "work", overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
        await scheduler.tick(minutes=2)
        assert diary.most_running == 4


async def _if_allowed(verb: Callable[..., object]) -> None:
    with suppress(MoveRefused):
        await verb("job", by="a person")  # type: ignore[misc]  # a coroutine function of Jobs
