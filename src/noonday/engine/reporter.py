"""Writes the progress that attempts report: the newest of each, together, at most once a second."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import NoondayError
from noonday.domain.execution import ExecutionId
from noonday.engine.held import Held, Stop
from noonday.engine.loop import Actor, Wish, first_line
from noonday.ports import Telemetry
from noonday.store import executions
from noonday.store.database import Database

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    held: Held
    fraction: float | None
    message: str | None


class Reporter(Actor):
    name = "reporter"
    gap = 1.0

    def __init__(self, *, db: Database, clock: Clock, telemetry: Telemetry) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._telemetry = telemetry
        self._newest: dict[ExecutionId, Report] = {}

    async def report(self, held: Held, fraction: float | None, message: str | None) -> None:
        held.reported = True
        self._newest[held.id] = Report(held, fraction, message)
        self.wake.set()

    def forget(self, held: Held) -> None:
        self._newest.pop(held.id, None)

    async def last_words(self, held: Held) -> None:
        """What was reported just before the end is kept too, if it can be: progress is a courtesy."""
        if held.id not in self._newest:
            return
        try:
            await self.run_once()
        except Exception as exc:
            log.warning("a progress report was lost", action="report", error=first_line(exc))

    async def run_once(self) -> Wish:
        if self._newest:
            batch, self._newest = self._newest, {}
            for report, cancelled in await self._db.write(partial(self._write, batch.values())):
                self._telemetry.progressed(report.held.claim.execution, report.fraction, report.message)
                if cancelled:
                    report.held.stop(Stop.CANCEL, self.clock.monotonic())
        return None

    def _write(self, batch: Collection[Report], conn: Connection) -> list[tuple[Report, bool]]:
        """Those that were taken, and whether somebody wants the run to be cancelled."""
        now = self.clock.now()
        taken = []
        for report in batch:
            execution = report.held.claim.execution
            try:
                cancelled = executions.report(
                    conn, execution.id, execution.attempt, report.fraction, report.message, now
                )
            except NoondayError:  # it has ended, or somebody else has it: its lease will tell
                continue
            taken.append((report, cancelled))
        return taken
