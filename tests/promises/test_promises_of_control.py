"""The promises about control, bad things, unknown tasks and time zones, each broken on purpose."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest
from sqlalchemy import text

from noonday.domain.execution import ExecutionState, SkipReason, WaitReason
from noonday.domain.job import RetryPolicy
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from noonday.domain.target import PythonTarget
from noonday.targets.tasks import make_task
from noonday.testing import ManualInstance
from tests.promises.diary import EVERY_TEN, Diary, accounted, due_so_far


class TestPromise6NoSurprise:
    async def test_resume_goes_on_with_the_next_future_time(
        self, scheduler: ManualInstance, diary: Diary
    ) -> None:
        job = await scheduler.add("job", EVERY_TEN, "work")
        await scheduler.tick(seconds=25)
        await scheduler.jobs.pause("job", by="a person")
        await scheduler.tick(minutes=2)
        assert len(diary.begun) == 2
        await scheduler.jobs.resume("job", by="a person")
        await scheduler.run_once()
        assert len(diary.begun) == 2, "resuming itself must not fire"
        await scheduler.tick(seconds=10)
        assert len(diary.begun) == 3
        rows = await scheduler.history("job")
        accounted(rows, due_so_far(job, scheduler))
        [lapse] = [row for row in rows if row.skip_reason is SkipReason.PAUSED]
        assert lapse.skipped_count == 12

    async def test_an_edit_moves_the_future_and_fires_nothing(
        self, scheduler: ManualInstance, diary: Diary
    ) -> None:
        await scheduler.add("job", EVERY_TEN, "work")
        await scheduler.tick(seconds=9)  # the next fire is already planned, two seconds ahead
        hourly = Interval(count=1, unit=IntervalUnit.HOURS)
        await scheduler.jobs.change(
            "job", lambda job: replace(job, timing=replace(job.timing, schedule=hourly)), by="a person"
        )
        await scheduler.tick(minutes=59)
        assert diary.begun == []
        await scheduler.tick(minutes=2)
        assert len(diary.begun) == 1

    async def test_no_attempt_starts_after_a_pause(self, scheduler: ManualInstance, diary: Diary) -> None:
        await scheduler.add("job", EVERY_TEN, "work")
        await scheduler.tick(seconds=9.5)
        await scheduler.jobs.pause("job", by="a person")
        await scheduler.tick(minutes=1)
        assert diary.begun == []


class TestPromise7OneBadThingHarmsItselfAlone:
    @pytest.mark.parametrize(
        "damage",
        [
            "cron_expression = 'every so often', schedule_type = 'cron', interval_minutes = NULL",
            "timezone = 'Mars/Olympus'",
            'target = \'{"type": "carrier pigeon"}\'',
            "target = '[]'",
            "interval_minutes = -5",
            "time_config = '{\"hour\": 99}', frequency = 'daily', schedule_type = 'calendar'",
            "overlap = 'perhaps'",
            "priority = 77",
        ],
    )
    async def test_a_row_damaged_by_plain_sql(
        self, scheduler: ManualInstance, diary: Diary, damage: str
    ) -> None:
        for name in ("good", "bad", "better"):
            await scheduler.add(name, EVERY_TEN, "work")
        await scheduler.tick(seconds=5)
        await scheduler.db.write(
            lambda conn: conn.exec_driver_sql(f"UPDATE jobs SET {damage} WHERE name = 'bad'")
        )
        await scheduler.tick(seconds=31)
        for name in ("good", "better"):
            rows = await scheduler.history(name)
            assert sum(row.state is ExecutionState.COMPLETED for row in rows) == 3

    async def test_a_task_that_raises_anything(self, scheduler: ManualInstance, diary: Diary) -> None:
        @scheduler.task
        async def bad() -> None:
            raise KeyboardInterrupt("from a task")

        await scheduler.add("bad", EVERY_TEN, "bad", retry=RetryPolicy(max_retries=0))
        await scheduler.add("good", EVERY_TEN, "work")
        await scheduler.tick(seconds=21)
        assert len(diary.ended) == 2
        assert {row.state for row in await scheduler.history("bad")} <= {
            ExecutionState.FAILED,
            ExecutionState.QUEUED,
        }


class TestPromise8UnknownTasksAreParked:
    async def test_it_is_shown_and_runs_once_somebody_knows_it(self, scheduler: ManualInstance) -> None:
        seen: list[object] = []
        target = PythonTarget(task="of another deployment", args=(1, "two"), kwargs={"three": [3.5, None]})
        await scheduler.add("strange", Interval(count=1, unit=IntervalUnit.HOURS), target)
        await scheduler.tick(hours=1, minutes=5)
        [row] = [row for row in await scheduler.history("strange") if row.state is ExecutionState.PENDING]
        assert row.wait_reason is WaitReason.UNKNOWN_TASK
        assert "of another deployment" in str(row.detail)

        async def later(*args: object, **kwargs: object) -> None:
            seen.append((args, kwargs))

        scheduler.tasks.add(make_task(later, "of another deployment"))
        await scheduler.engine.unparker.run_once()
        await scheduler.tick(seconds=1)
        assert seen == [((1, "two"), {"three": [3.5, None]})]
        rows = await scheduler.history("strange")
        assert next(one for one in rows if one.id == row.id).state is ExecutionState.COMPLETED

    async def test_arguments_are_kept_as_json(self, scheduler: ManualInstance) -> None:
        target = PythonTarget(task="x", args=({"a": 1},))
        await scheduler.add("job", EVERY_TEN, target)
        stored = await scheduler.db.read(
            lambda conn: conn.execute(text("SELECT CAST(target AS text) FROM jobs")).scalar()
        )
        assert json.loads(str(stored))["args"] == [{"a": 1}]


class TestPromise10ZoneData:
    @pytest.fixture
    def rules(self, tmp_path: Path) -> Iterator[Callable[[str], None]]:
        """A zone of our own whose rules can be exchanged, as a new release of the time-zone data does."""
        real = {name: _zone_file(name) for name in ("Europe/Berlin", "America/New_York")}

        def become(name: str) -> None:
            (tmp_path / "Test").mkdir(exist_ok=True)
            (tmp_path / "Test" / "Land").write_bytes(real[name])
            zoneinfo.ZoneInfo.clear_cache()

        zoneinfo.reset_tzpath([str(tmp_path), *zoneinfo.TZPATH])
        yield become
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()

    async def test_future_times_are_computed_anew(
        self, scheduler: ManualInstance, diary: Diary, rules: Callable[[str], None]
    ) -> None:
        rules("Europe/Berlin")
        await scheduler.add("job", Cron(expression="0 9 * * *"), "work", timezone="Test/Land")
        await scheduler.engine.zones.run_once()
        before = (await scheduler.jobs.get("job")).next_run_at
        assert before == datetime(2027, 1, 2, 8, tzinfo=UTC)

        rules("America/New_York")
        await scheduler.restart()
        await scheduler.engine.zones.run_once()
        job = await scheduler.jobs.get("job")
        assert job.next_run_at == datetime(2027, 1, 1, 14, tzinfo=UTC)
        await scheduler.tick(hours=3)
        assert [at for _, at in diary.begun] == [datetime(2027, 1, 1, 14, tzinfo=UTC)]

    async def test_what_is_overdue_staysdue_so_far(
        self, scheduler: ManualInstance, diary: Diary, rules: Callable[[str], None]
    ) -> None:
        rules("Europe/Berlin")
        await scheduler.add("job", Cron(expression="0 14 * * *"), "work", timezone="Test/Land")
        await scheduler.engine.zones.run_once()
        await scheduler.kill()
        scheduler.clock.advance(hours=1, minutes=2)
        rules("America/New_York")
        await scheduler.restart()
        await scheduler.engine.zones.run_once()
        await scheduler.tick(seconds=1)
        assert len(diary.begun) == 1


def _zone_file(name: str) -> bytes:
    package, _, zone = name.rpartition("/")
    return (files("tzdata.zoneinfo") / package / zone).read_bytes()
