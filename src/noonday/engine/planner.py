"""Turns due jobs into executions shortly before their moment; the unique slot makes a second one harmless."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.job import Job, Lane
from noonday.domain.planning import Facts, Plan, plan
from noonday.engine.aside import set_aside
from noonday.engine.counters import Counters
from noonday.engine.feeder import Feeder
from noonday.engine.fence import Fence, no_fence
from noonday.engine.loop import Actor, Wish
from noonday.ports import Pledge, Telemetry
from noonday.store import executions, jobs
from noonday.store.database import Database
from noonday.store.jobs import Due
from noonday.store.notices import JOBS
from noonday.store.releasing import rest

_TOGETHER: Final = timedelta(milliseconds=50)  # who is due so close behind belongs to a crowd


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerConfig:
    lookahead: timedelta = timedelta(seconds=2)  # a job has its turn so long before it is due
    reach: timedelta = timedelta(seconds=8)  # at most: so far it is planned then, and an edit takes it back
    check_interval: timedelta = timedelta(seconds=60)  # the slow safety poll
    batch: int = 250  # jobs at most in one transaction
    runs: int = 500  # of them, as far as one can tell: while they are planned nobody claims of those jobs
    cap: int = 1000  # instants of one job per transaction
    crowd: int = 1000  # jobs that are due together have their turn twice as long before


@dataclass(frozen=True, slots=True)
class Pass:
    """What one transaction did."""

    jobs: int
    planned: int
    more: bool
    next_due_at: datetime | None
    crowd_at: datetime | None  # the same, if many are due then
    pledges: Sequence[Pledge]
    fires: Sequence[tuple[Job, int]]


class Planner(Actor):
    """Sleeps until the next due moment comes within the lookahead; woken by changes.

    A job that fires often is planned for several fires at once: to lock its row and move it on costs more
    than a fire. How far differs from batch to batch, so that jobs of one batch do not all come again at once.
    What is claimed of a job waits while it is planned: where many fires are due it looks more often, each
    time for about a batch, instead of holding all of them for long.
    """

    name = "planner"
    gap = 0.01

    def __init__(  # noqa: PLR0913 - what a plan needs, each by its name
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        config: PlannerConfig,
        feeder: Feeder,
        telemetry: Telemetry,
        chance: Callable[[], float],
        fence: Fence = no_fence,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(JOBS))
        self._feeder = feeder
        self._telemetry = telemetry
        self._fence = fence
        self._db = db
        self._counters = counters
        self._config = config
        self._chance = chance
        self._runs_of_each = 1.0  # of the jobs of the newest batch
        self._wait = self._longest_wait = config.lookahead / 4
        self._crowd_at: datetime | None = None  # what is due by then is planned earlier

    async def run_once(self) -> Wish:
        looked_at = 0
        while True:
            now = self.clock.now()
            horizon = self._horizon(now)
            facts = self._far(horizon - now)
            done = await self._db.write(partial(self._plan_batch, now, horizon, facts, self._feeder.lanes))
            looked_at += done.jobs
            if done.planned:
                self._runs_of_each = done.planned / done.jobs
            self._feeder.pledge(done.pledges)
            self._counters.planned += done.planned
            for job, fires in done.fires:
                self._telemetry.planned(job, fires)
            self._counters.last_check_at = now
            if not done.more:
                self._crowd_at = done.crowd_at
                self._wait = min(self._longest_wait, self._wait * self._batch / max(1, looked_at))
                return self._next_look(done.next_due_at, now)

    @property
    def _batch(self) -> int:
        """So many jobs have about as many runs as one transaction shall plan."""
        return max(1, min(self._config.batch, int(self._config.runs / self._runs_of_each)))

    def _next_look(self, next_due_at: datetime | None, now: datetime) -> datetime:
        """Everything up to now + lookahead is planned: a little waiting makes a batch and delays nothing."""
        safety = now + self._config.check_interval
        if next_due_at is None:
            return safety
        before = self._config.lookahead * (1 if self._crowd_at is None else 2)
        return min(max(next_due_at - before, now + self._wait), safety)

    def _horizon(self, now: datetime) -> datetime:
        """A crowd takes long to be planned, and then to be claimed."""
        usual, crowd_at = now + self._config.lookahead, self._crowd_at
        if crowd_at is None or crowd_at > usual + self._config.lookahead:
            return usual
        return max(usual, crowd_at + _TOGETHER)

    def _in_crowd(self, job: Job) -> bool:
        """Then its runs are not pledged to the streams: they are gathered, and the finder feeds the rest."""
        at, crowd_at = job.next_run_at, self._crowd_at
        return at is not None and crowd_at is not None and crowd_at <= at <= crowd_at + _TOGETHER

    def _far(self, ahead: timedelta) -> Facts:
        """So long before they are due these have their turn; so far beyond that they are planned."""
        span = self._config.reach - self._config.lookahead
        return Facts(lookahead=ahead + span * (1 + self._chance()) / 2, cap=self._config.cap)

    def _plan_batch(
        self, now: datetime, horizon: datetime, facts: Facts, fed: Collection[Lane], conn: Connection
    ) -> Pass:
        self._fence(conn)
        limit = self._batch
        due = jobs.due(conn, horizon, limit)
        plans: list[tuple[Due, Plan]] = []
        ended: dict[str, Job] = {}
        more = len(due) == limit
        for one in due:
            made = self._plan(conn, one.job, facts, now)
            if made is None:
                continue
            plans.append((one, made))
            if made.next_run_at is not None:
                more |= made.next_run_at <= horizon
            elif not made.fires:  # no run will end that could bring it to rest
                ended[one.job.id] = replace(one.job, next_run_at=None)
        crowd = {one.job.id for one in due if self._in_crowd(one.job)}
        planned, pledges = executions.plan_due(conn, plans, now, fed, crowd)
        rest(conn, ended, now)
        fires = [(one.job, len(made.fires)) for one, made in plans]
        next_at = jobs.next_due_at(conn)
        crowd_at = next_at if not more and self._is_crowd(conn, next_at) else None
        return Pass(len(due), planned, more, next_at, crowd_at, pledges, fires)

    def _is_crowd(self, conn: Connection, next_at: datetime | None) -> bool:
        return next_at is not None and jobs.many_due(conn, next_at + _TOGETHER, self._config.crowd)

    def _plan(self, conn: Connection, job: Job, facts: Facts, now: datetime) -> Plan | None:
        """One job that cannot be planned harms itself alone."""
        try:
            made = plan(job, facts, now)
            if made.next_run_at == job.next_run_at:
                raise RuntimeError(f"the plan does not get beyond {job.next_run_at}")
        except Exception as exc:
            self._counters.set_aside += 1
            set_aside(conn, job, exc, now)
            return None
        return made
