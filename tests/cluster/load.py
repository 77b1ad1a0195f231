"""The jobs that a fault is tried on: their due times are known beforehand, by plain arithmetic."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from tests.cluster.cluster import Cluster
from tests.cluster.history import FINAL, History, Row, Try, Watched
from tests.cluster.node import eventually
from tests.cluster.target import Manners

# Every due time runs, however late, whatever else still runs.
STRICT: Final = {"coalesce": False, "catch_up": "all", "overlap": "allow"}
DEFAULT_SKIPS: Final = frozenset({"coalesced", "overlap"})  # what the default policies may do near a fault
# Forced runs of jobs that nobody needs to arm: one statement makes many.
BURST: Final = """
WITH made AS (
    INSERT INTO jobs (name, target, schedule_type, scheduler_version, dirty)
    SELECT name, target, 'manual', 2, false
    FROM unnest(%(names)s::text[], %(targets)s::jsonb[]) AS u(name, target)
    RETURNING id, name
), planned AS (
    INSERT INTO executions (id, job_id, cause, scheduled_for, available_at, state, created_at, road)
    SELECT gen_random_uuid(), id, 'manual', to_timestamp(%(due)s), to_timestamp(%(due)s), 'queued', now(), 2
    FROM made
)
SELECT name, id::text FROM made
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Some jobs of one kind."""

    name: str
    number: int
    version: int
    every: int = 1  # seconds
    cron: bool = False
    strict: bool = True
    delay: float = 0.0  # of the target's answer
    priority: int = 2


USUAL: Final = (
    Kind(name="database", number=3, version=1),
    Kind(name="streams", number=5, version=2),
    Kind(name="high", number=1, version=2, priority=1),
    Kind(name="low", number=1, version=2, priority=3),
    Kind(name="cron-database", number=1, version=1, every=2, cron=True),
    Kind(name="cron-streams", number=1, version=2, every=2, cron=True),
    Kind(name="default-database", number=1, version=1, strict=False),
    Kind(name="default-streams", number=1, version=2, strict=False),
    Kind(name="slow-database", number=1, version=1, every=3, delay=1.2),
    Kind(name="slow-streams", number=2, version=2, every=3, delay=1.2),
)


@dataclass(slots=True)
class Load:
    """Jobs on a cluster from `begin` to `finish`, which tells what became of them."""

    cluster: Cluster
    title: str
    kinds: tuple[Kind, ...] = USUAL
    ids: dict[str, str] = field(default_factory=dict)  # job -> id
    _every: dict[str, Kind] = field(default_factory=dict)
    _once: dict[str, float] = field(default_factory=dict)  # job -> its only due time
    _since: dict[str, float] = field(default_factory=dict)  # job -> when it was there for sure
    _first: int = 0
    _arrived: int = 0

    def begin(self) -> None:
        self._arrived = len(self.cluster.target.arrivals())
        self._first = math.ceil(time.time()) + 2
        self._first += self._first % 2  # an even second, where the cron jobs begin as well
        for kind in self.kinds:
            for number in range(kind.number):
                name = f"{self.title}-{kind.name}-{number}"
                self.cluster.target.treat(name, Manners(delay=kind.delay))
                made = self.cluster.ask("POST", "/api/v2/jobs", self._body(name, kind))
                self.ids[name] = made["id"]
                self._every[name] = kind
                self._since[name] = time.time()

    def _body(self, name: str, kind: Kind) -> dict[str, Any]:
        when: dict[str, Any] = {"schedule_type": "cron", "cron_expression": f"*/{kind.every} * * * * *"}
        if not kind.cron:
            when = {
                "schedule_type": "interval",
                "interval_minutes": kind.every,
                "interval_type": "seconds",
            }
        return {
            "name": name,
            "target": {"type": "http", "url": self.cluster.target.of(name)},
            "start_at": datetime.fromtimestamp(self._first, UTC).isoformat(),
            "scheduler_version": kind.version,
            "priority": kind.priority,
            "timeout_seconds": 20,
            "max_retries": 5,
            "retry_backoff_seconds": 1,
            **when,
            **(STRICT if kind.strict else {}),
        }

    def burst(self, number: int = 120, delay: float = 0.6) -> float:
        """More jobs at one moment than there are slots, so that some must wait on the road; that moment."""
        due = math.ceil(time.time()) + 1
        names = [f"{self.title}-burst-{len(self._once) + n}" for n in range(number)]
        targets = [json.dumps({"type": "http", "url": self.cluster.target.of(name)}) for name in names]
        for name in names:
            self.cluster.target.treat(name, Manners(delay=delay))
        with self.cluster.sql() as conn:
            made = conn.execute(BURST, {"names": names, "targets": targets, "due": due})
            self.ids |= dict(made.fetchall())
            conn.execute("SELECT pg_notify('noonday', 'plain work')")
        self._once |= dict.fromkeys(names, float(due))
        return float(due)

    def dues(self, job: str, until: float) -> tuple[float, ...]:
        if job in self._once:
            return (self._once[job],)
        every = self._every[job].every
        grid = range(self._first, math.floor(until) + 1, every)
        return tuple(float(due) for due in grid if due > self._since[job])

    def watched(self, until: float) -> tuple[Watched, ...]:
        return tuple(
            Watched(
                job=job,
                dues=self.dues(job, until),
                may_skip=DEFAULT_SKIPS if job in self._every and not self._every[job].strict else frozenset(),
            )
            for job in self.ids
        )

    def arrived_since(self, moment: float) -> bool:
        """Has every job that fires again and again arrived for a due time after this moment?"""
        arrivals = self.cluster.target.arrivals()[self._arrived :]
        return self._every.keys() <= {arrival.job for arrival in arrivals if arrival.due > moment}

    def finish(self, within: float = 25.0) -> History:
        """What was due until now is waited for, then the jobs are disabled, and the rest comes to its end."""
        until = time.time() - 0.5
        eventually(lambda: self.at_rest(until), within, "due times are not settled")
        self._end()
        eventually(lambda: not any(r.state not in FINAL for r in self.rows()), within, "rows stay open")
        jobs = self.ids.keys()
        return History(
            watched=self.watched(until),
            arrivals=tuple(a for a in self.cluster.target.arrivals()[self._arrived :] if a.job in jobs),
            rows=tuple(self.rows()),
        )

    def at_rest(self, until: float) -> bool:
        """Is no row open that was due by then?"""
        query = (
            "SELECT count(*) FROM executions WHERE state IN ('pending', 'queued', 'running') "
            "AND job_id::text = ANY(%s) AND scheduled_for <= to_timestamp(%s)"
        )
        with self.cluster.sql() as conn:
            found = conn.execute(query, (list(self.ids.values()), until)).fetchone()
        return found == (0,)

    def _end(self) -> None:
        for job in self._every:
            self.cluster.ask("PUT", f"/api/v2/jobs/{job}", {"schedule_enabled": False})

    def remove(self) -> None:
        """Whatever happened, so that the next trial begins on an empty road."""
        with suppress(psycopg.Error), self.cluster.sql() as conn:
            conn.execute("DELETE FROM jobs WHERE id::text = ANY(%s)", (list(self.ids.values()),))

    def rows(self) -> list[Row]:
        """As they stand in the database, and so in the API."""
        names = {identity: job for job, identity in self.ids.items()}
        with self.cluster.sql() as conn:
            tries: dict[str, list[Try]] = {}
            for execution, number, outcome, ended in conn.execute(
                "SELECT a.execution_id::text, a.number, a.outcome, a.completed_at FROM attempts a "
                "JOIN executions e ON e.id = a.execution_id WHERE e.job_id::text = ANY(%s) ORDER BY 1, 2",
                (list(names),),
            ):
                tries.setdefault(execution, []).append(
                    Try(number=number, outcome=outcome, ended=ended.timestamp())
                )
            found = conn.execute(
                "SELECT id::text, job_id::text, scheduled_for, through_at, state, skip_reason "
                "FROM executions WHERE job_id::text = ANY(%s)",
                (list(names),),
            ).fetchall()
            for execution, number, ended in conn.execute(
                "SELECT id::text, attempt, completed_at FROM executions "
                "WHERE job_id::text = ANY(%s) AND state = 'completed'",
                (list(names),),
            ):
                tries.setdefault(execution, []).append(
                    Try(number=number, outcome="completed", ended=ended.timestamp())
                )
        return [
            Row(
                execution=execution,
                job=names[job],
                due=due.timestamp(),
                through=None if through is None else through.timestamp(),
                state=state,
                skip_reason=reason,
                tries=tuple(tries.get(execution, ())),
            )
            for execution, job, due, through, state, reason in found
        ]
