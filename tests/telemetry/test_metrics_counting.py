"""What the engine tells becomes numbers, within bounds."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import Cause, Road, SkipReason
from noonday.domain.job import Lane, RetryPolicy
from noonday.domain.outcome import Accepted, Cancelled, Completed, Failed, Outcome, Parked, Released, TimedOut
from noonday.domain.schedule import Interval
from noonday.ports import Claim, Telemetry
from noonday.store.backlog import Backlog
from noonday.telemetry.metrics import MOST, Metrics, Standing
from tests.factories import a_job, an_execution
from tests.telemetry.scraped import Scraped

SECOND = timedelta(seconds=1)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("crawler")


def a_claim(*, source: str | None = None, retries: int = 3, failures: int = 0, attempt: int = 1) -> Claim:
    job = a_job(source_id=source, retry=RetryPolicy(max_retries=retries))
    return Claim(job, an_execution(job=job, attempt=attempt, failures=failures))


def test_it_is_what_the_engine_tells_its_doings_to(metrics: Metrics) -> None:
    telemetry: Telemetry = metrics
    telemetry.campaigned()
    assert Scraped(metrics.render())("leader_election_attempts_total") == 1


def test_it_counts_plans_by_kind_of_schedule_and_lane(metrics: Metrics) -> None:
    job = a_job(lane=Lane.HIGH)
    metrics.planned(job, 3)
    metrics.planned(replace(job, timing=replace(job.timing, schedule=Interval(count=1))), 2)
    metrics.planned(job, 1)
    scraped = Scraped(metrics.render())
    assert scraped("jobs_scheduled_total", schedule_type=job.timing.schedule.type, priority="high") == 4
    assert scraped("jobs_scheduled_total", schedule_type="interval", priority="high") == 2


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Completed(), "completed"),
        (Failed(error="no"), "failed"),
        (TimedOut(after=SECOND), "timed_out"),
        (Cancelled(), "cancelled"),
    ],
)
def test_it_counts_what_ended_under_its_status_and_source(
    metrics: Metrics, outcome: Outcome, status: str
) -> None:
    metrics.ended(a_claim(source="s1"), outcome, 2.0)
    metrics.ended(a_claim(), outcome, 0.05)
    scraped = Scraped(metrics.render())
    assert scraped("jobs_executed_total", status=status, source_id="s1") == 1
    assert scraped("jobs_executed_total", status=status, source_id="") == 1
    assert scraped("job_duration_seconds_sum", source_id="s1") == 2
    assert scraped("job_duration_seconds_bucket", source_id="s1", le="1.0") == 0
    assert scraped("job_duration_seconds_bucket", source_id="s1", le="2.5") == 1
    assert scraped("job_duration_seconds_bucket", source_id="", le="0.05") == 1, (
        "a bound belongs to its bucket"
    )
    assert scraped("job_duration_seconds_count", source_id="") == 1


@pytest.mark.parametrize("outcome", [Released(), Parked(detail="?"), Accepted(heartbeat=SECOND)])
def test_what_has_not_ended_is_not_counted(metrics: Metrics, outcome: Outcome) -> None:
    metrics.ended(a_claim(source="s1"), outcome, 1.0)
    scraped = Scraped(metrics.render())
    assert scraped("job_duration_seconds_count", source_id="s1") is None
    assert scraped("retries_total") == 0


@pytest.mark.parametrize(
    ("outcome", "failures", "again"),
    [
        (Failed(error="no"), 0, 1),
        (Failed(error="no"), 2, 1),
        (Failed(error="no"), 3, 0),
        (Failed(error="no", retryable=False), 0, 0),
        (TimedOut(after=SECOND), 0, 1),
        (Cancelled(), 0, 0),
        (Completed(), 0, 0),
    ],
)
def test_it_counts_a_retry_where_one_follows(
    metrics: Metrics, outcome: Outcome, failures: int, again: int
) -> None:
    metrics.ended(a_claim(retries=3, failures=failures), outcome, 1.0)
    assert Scraped(metrics.render())("retries_total") == again


def test_lateness_is_that_of_first_attempts_of_scheduled_runs(metrics: Metrics) -> None:
    claim = a_claim()
    metrics.started(claim, SECOND / 4)
    metrics.started(a_claim(attempt=2), timedelta(hours=1))
    metrics.started(Claim(claim.job, replace(claim.execution, cause=Cause.MANUAL)), timedelta(hours=1))
    metrics.started(Claim(claim.job, replace(claim.execution, road=Road.STREAMS)), -SECOND / 100)
    scraped = Scraped(metrics.render())
    assert scraped("fire_lateness_seconds_count", priority="normal", road="database") == 1
    assert scraped("fire_lateness_seconds_sum", priority="normal", road="database") == 0.25
    assert scraped("fire_lateness_seconds_bucket", priority="normal", road="streams", le="0.005") == 1


def test_what_may_happen_is_there_before_it_does(metrics: Metrics) -> None:
    scraped = Scraped(metrics.render())
    assert {scraped("queue_enqueued_total", priority=lane) for lane in ("high", "normal", "low")} == {0}
    assert {scraped("skips_total", reason=reason.value) for reason in SkipReason} == {0}
    assert scraped("lease_losses_total") == 0


def test_breakers_have_a_number_for_their_state(metrics: Metrics) -> None:
    for state, number in ((BreakerState.OPEN, 2), (BreakerState.HALF_OPEN, 1), (BreakerState.CLOSED, 0)):
        metrics.breaker("example.com", state, state is BreakerState.OPEN)
        scraped = Scraped(metrics.render())
        assert scraped("circuit_breaker_state", domain="example.com") == number
        assert scraped("circuit_breaker_trips_total", domain="example.com") == 1


def test_sources_and_domains_are_bounded(metrics: Metrics) -> None:
    for number in range(MOST + 50):
        metrics.ended(a_claim(source=f"source-{number}"), Completed(), 1.0)
        metrics.breaker(f"{number}.example.com", BreakerState.OPEN, True)
    metrics.ended(a_claim(source="source-0"), Completed(), 1.0)
    metrics.ended(a_claim(), Completed(), 1.0)
    scraped = Scraped(metrics.render())
    assert scraped("jobs_executed_total", status="completed", source_id="source-0") == 2
    assert scraped("jobs_executed_total", status="completed", source_id=f"source-{MOST}") is None
    assert scraped("jobs_executed_total", status="completed", source_id="other") == 50
    assert scraped("jobs_executed_total", status="completed", source_id="") == 1
    assert scraped("circuit_breaker_trips_total", domain="other") == 50
    sources = {labels for name, labels in scraped.samples if name.endswith("jobs_executed_total")}
    assert len(sources) == MOST + 2


def test_a_label_may_hold_anything(metrics: Metrics) -> None:
    metrics.ended(a_claim(source='a"b\\c\nd' + "x" * 500), Completed(), 1.0)
    scraped = Scraped(metrics.render())
    assert scraped("jobs_executed_total", status="completed", source_id=('a"b\\c\nd' + "x" * 500)[:200]) == 1


def test_the_instance_is_asked_at_each_scrape(metrics: Metrics) -> None:
    standing = Standing(version="9", slots=10, busy=3, leads=True, term=7, streaming=True, recovered=2)
    metrics.watch(lambda: standing)
    scraped = Scraped(metrics.render())
    names = ("worker_pool_size", "workers_busy", "workers_idle", "jobs_currently_running")
    assert [scraped(name) for name in names] == [10, 3, 7, 3]
    assert (scraped("is_leader"), scraped("leader_term"), scraped("road_up")) == (1, 7, 1)
    assert (scraped("recoveries_total"), scraped("build_info", version="9")) == (2, 1)
    standing = Standing(slots=10, busy=12)  # handed back a moment ago, and still ending
    assert Scraped(metrics.render())("workers_idle") == 0


def test_what_the_database_says_is_left_out_while_it_is_away(metrics: Metrics) -> None:
    metrics.saw(Backlog(depths={Lane.HIGH: 4}, outbox_lag=SECOND))
    scraped = Scraped(metrics.render())
    assert [scraped("queue_depth", priority=lane) for lane in ("high", "normal", "low")] == [4, 0, 0]
    assert (scraped("outbox_lag_seconds"), scraped("store_up")) == (1, 1)
    metrics.saw(None)
    scraped = Scraped(metrics.render())
    assert scraped("queue_depth", priority="high") is None
    assert (scraped("outbox_lag_seconds"), scraped("store_up")) == (None, 0)


def test_no_count_is_lost_between_threads_while_somebody_scrapes(metrics: Metrics) -> None:
    claims = [a_claim(source=f"s{n}") for n in range(50)]

    def work() -> None:
        for claim in claims * 20:
            metrics.ended(claim, Completed(), 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metrics.render()
    assert Scraped(metrics.render())("jobs_executed_total", status="completed", source_id="s7") == 80
