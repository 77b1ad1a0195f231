"""Prometheus metrics under the names that dashboards of the first scheduler know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import Cause, Execution, Road, SkipReason
from noonday.domain.job import Job, JobId, Lane
from noonday.domain.outcome import Cancelled, Completed, Failed, Outcome, TimedOut
from noonday.ports import Claim
from noonday.store.backlog import Backlog
from noonday.telemetry.series import Bounded, Labels, Level, Notes, Spread, Tally

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
MOST: Final = 200  # values each of source_id and domain; all further ones are `other`

_LANES: Final = {lane: (lane.name.lower(),) for lane in Lane}
_WAYS: Final = {(lane, road): (lane.name.lower(), road.name.lower()) for lane in Lane for road in Road}
_REASONS: Final = {reason: (reason.value,) for reason in SkipReason}
_STATUS: Final[dict[type, str]] = {  # what is handed back, parked or goes on elsewhere has not ended
    Completed: "completed",
    Failed: "failed",
    TimedOut: "timed_out",
    Cancelled: "cancelled",
}
_BREAKER: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
_TOOK: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600)
_LATE: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 35, 60, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an instance knows of itself at the moment of a scrape."""

    version: str = ""
    slots: int = 0
    busy: int = 0
    leads: bool = False
    term: int = 0
    streaming: bool = False
    recovered: int = 0
    refused: int = 0
    abandoned: int = 0
    set_aside: int = 0


class Metrics(Collector):
    """Telemetry that is counted. Its own figures come from the verbs, the others are asked at the scrape."""

    def __init__(self, namespace: str, *, most: int = MOST) -> None:
        self._prefix = prefix = f"{namespace}_scheduler_"
        self._standing: Callable[[], Standing] = Standing
        self._backlog: Backlog | None = None
        self._source, self._domain = Bounded(most), Bounded(most)

        def tally(name: str, text: str, *labels: str, known: Iterable[Labels] = ()) -> Tally:
            return Tally(prefix + name, text, labels, known)

        self._planned = tally("jobs_scheduled", "Runs planned", "schedule_type", "priority")
        self._executed = tally("jobs_executed", "Attempts that ended here", "status", "source_id")
        self._enqueued = tally("queue_enqueued", "Ids put on the streams", "priority", known=_LANES.values())
        self._dequeued = tally(
            "queue_dequeued", "Ids taken from the streams", "priority", known=_LANES.values()
        )
        self._redelivered = tally(
            "queue_redeliveries", "Ids taken over from a silent holder", "priority", known=_LANES.values()
        )
        self._fired = tally("triggers_fired", "Outside events received", "type")
        self._matched = tally("triggers_matched", "Runs started by outside events", "type")
        self._trips = tally("circuit_breaker_trips", "Breakers that opened", "domain")
        self._attempts = tally("leader_election_attempts", "Campaigns of this instance")
        self._losses = tally("lease_losses", "Attempts stopped because their lease was gone")
        self._skips = tally("skips", "Due times that did not run", "reason", known=_REASONS.values())
        self._retries = tally("retries", "Failed attempts that are tried again")
        self._breakers = Level(prefix + "circuit_breaker_state", "0 closed, 1 half open, 2 open", ("domain",))
        self._took = Spread(prefix + "job_duration_seconds", "Length of attempts", ("source_id",), _TOOK)
        self._late = Spread(
            prefix + "fire_lateness_seconds",
            "From the due time to the start of the first attempt",
            ("priority", "road"),
            _LATE,
            _WAYS.values(),
        )
        self._series = (
            *(self._planned, self._executed, self._took, self._enqueued, self._dequeued, self._redelivered),
            *(self._fired, self._matched, self._breakers, self._trips, self._attempts, self._losses),
            *(self._skips, self._retries, self._late),
        )
        self._begun = Notes(self._count_begun)
        self._over = Notes(self._count_over)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def planned(self, job: Job, fires: int) -> None:
        self._planned.add((job.timing.schedule.type, *_LANES[job.lane]), fires)

    def skipped(self, job_id: JobId, reason: SkipReason, count: int) -> None:
        self._skips.add(_REASONS[reason], count)

    def enqueued(self, lane: Lane, count: int) -> None:
        self._enqueued.add(_LANES[lane], count)

    def dequeued(self, lane: Lane, count: int) -> None:
        self._dequeued.add(_LANES[lane], count)

    def redelivered(self, lane: Lane, count: int) -> None:
        self._redelivered.add(_LANES[lane], count)

    def started(self, claim: Claim, late: timedelta) -> None:
        """Only a first attempt tells of the scheduler: later ones wait for a reason of their own."""
        execution = claim.execution
        if execution.attempt == 1 and execution.cause is Cause.SCHEDULE:
            self._begun.add((execution.lane, execution.road, late))

    def ended(self, claim: Claim, outcome: Outcome, took: float) -> None:
        status = _STATUS.get(type(outcome))
        if status is None:
            return
        self._over.add((status, claim.job.source_id, took))
        if status == "completed":
            return
        again = isinstance(outcome, TimedOut) or (isinstance(outcome, Failed) and outcome.retryable)
        if again and claim.execution.failures < claim.job.retry.max_retries:
            self._retries.add()

    def _count_begun(self, notes: list[tuple[Lane, Road, timedelta]]) -> None:
        spans: dict[Labels, list[float]] = {}
        for lane, road, late in notes:
            spans.setdefault(_WAYS[lane, road], []).append(late.total_seconds())
        for labels, found in spans.items():
            self._late.add(labels, found)

    def _count_over(self, notes: list[tuple[str, str | None, float]]) -> None:
        spans: dict[tuple[str, str | None], list[float]] = {}
        for status, source_id, took in notes:
            spans.setdefault((status, source_id), []).append(took)
        for (status, source_id), found in spans.items():
            source = self._source(source_id)
            self._executed.add((status, source), len(found))
            self._took.add((source,), found)

    def progressed(self, execution: Execution, fraction: float | None, message: str | None) -> None:
        pass  # of interest to those who watch a run, not to those who count

    def lease_lost(self) -> None:
        self._losses.add()

    def triggered(self, kind: str, matched: int) -> None:
        self._fired.add((kind,))
        self._matched.add((kind,), matched)

    def breaker(self, domain: str, state: BreakerState, tripped: bool) -> None:
        labels = (self._domain(domain),)
        self._breakers.set(labels, _BREAKER[state])
        self._trips.add(labels, int(tripped))

    def campaigned(self) -> None:
        self._attempts.add()

    def watch(self, standing: Callable[[], Standing]) -> None:
        """Whom to ask at each scrape."""
        self._standing = standing

    def saw(self, backlog: Backlog | None) -> None:
        """The newest look at the database; None when it could not be had."""
        self._backlog = backlog

    def render(self) -> bytes:
        """The text that a scrape reads."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        self._begun.count()
        self._over.count()
        for series in self._series:
            yield series.family()
        yield from self._own(self._standing())
        yield from self._stored(self._backlog)

    def _own(self, now: Standing) -> Iterator[Metric]:
        yield self._gauge("jobs_currently_running", "Attempts that run here", now.busy)
        yield self._gauge("worker_pool_size", "Slots of this instance", now.slots)
        yield self._gauge("workers_busy", "Slots in use", now.busy)
        yield self._gauge("workers_idle", "Slots free", max(now.slots - now.busy, 0))
        yield self._gauge("is_leader", "1 where this instance plans", now.leads)
        yield self._gauge("leader_term", "The newest term of this instance as leader", now.term)
        yield self._gauge("road_up", "1 while version 2 takes the streams here", now.streaming)
        yield self._counter("recoveries", "Executions of dead leases settled here", now.recovered)
        yield self._counter("endings_refused", "Endings that came after their lease was gone", now.refused)
        yield self._counter("attempts_abandoned", "Attempts that did not stop when told to", now.abandoned)
        yield self._counter("jobs_set_aside", "Jobs paused because they could not be planned", now.set_aside)
        info = GaugeMetricFamily(self._prefix + "build_info", "Always 1", labels=("version",))
        info.add_metric((now.version,), 1)
        yield info

    def _stored(self, backlog: Backlog | None) -> Iterator[Metric]:
        """What is not known is left out: an old number would look like the truth."""
        yield self._gauge("store_up", "1 if the newest look at the database went well", backlog is not None)
        prefix = self._prefix
        depth = GaugeMetricFamily(prefix + "queue_depth", "Due and not yet claimed", labels=("priority",))
        lag = GaugeMetricFamily(prefix + "outbox_lag_seconds", "Age of the oldest letter that waits")
        if backlog is not None:
            for lane, labels in _LANES.items():
                depth.add_metric(labels, backlog.depths.get(lane, 0))
            lag.add_metric((), backlog.outbox_lag.total_seconds())
        yield depth
        yield lag

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(self._prefix + name, text, value=value)

    def _counter(self, name: str, text: str, value: int) -> Metric:
        return CounterMetricFamily(self._prefix + name, text, value=value)
