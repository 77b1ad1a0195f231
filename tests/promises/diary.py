"""What the tests of the promises share: a scheduler moved by hand, and a diary of what really happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.targets.tasks import current
from noonday.testing import ManualInstance

EVERY_TEN = Interval(count=10, unit=IntervalUnit.SECONDS)


@dataclass(slots=True)
class Diary:
    """What really happened, told by the task itself and not by the scheduler."""

    scheduler: ManualInstance
    takes: float = 0.0
    begun: list[tuple[str, datetime]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    now_running: int = 0
    most_running: int = 0

    async def work(self) -> None:
        run = current().execution_id
        self.begun.append((run, self.scheduler.clock.now()))
        self.now_running += 1
        self.most_running = max(self.most_running, self.now_running)
        try:
            if self.takes:
                await self.scheduler.clock.sleep(self.takes)
        finally:
            self.now_running -= 1
        self.ended.append(run)


def accounted(rows: list[Execution], due: list[datetime]) -> None:
    """Each due instant is in exactly one row: a run, or a lapse with a reason."""
    runs = [row.scheduled_for for row in rows if row.skip_reason is None]
    lapses = [row for row in rows if row.skip_reason is not None]
    for instant in due:
        covering = runs.count(instant) + sum(
            row.scheduled_for <= instant <= (row.through_at or row.scheduled_for) for row in lapses
        )
        assert covering == 1, f"{instant} stands in {covering} rows"
    inside = [row for row in lapses if due and due[0] <= row.scheduled_for <= due[-1]]
    total = sum(instant in due for instant in runs) + sum(max(row.skipped_count, 1) for row in inside)
    assert total == len(due)


def due_so_far(job: Job, scheduler: ManualInstance) -> list[datetime]:
    """The instants of a ten-second interval that are over."""
    created = job.created_at
    seconds = int((scheduler.clock.now() - created).total_seconds())
    return [created + timedelta(seconds=10 * n) for n in range(1, seconds // 10 + 1)]
