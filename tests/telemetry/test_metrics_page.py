"""docs/metrics.md, the names that older dashboards know, and what a scrape shows: all the same."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import SkipReason
from noonday.domain.job import JobId, Lane
from noonday.domain.outcome import Completed
from noonday.ports import Claim
from noonday.store.backlog import Backlog
from noonday.telemetry.metrics import Metrics
from tests.factories import a_job, an_execution
from tests.telemetry.scraped import PREFIX, Scraped

PAGE = Path(__file__).parent.parent.parent / "docs" / "metrics.md"

FIRST_SCHEDULER = """
jobs_scheduled_total{schedule_type, priority}
jobs_executed_total{status, source_id}
job_duration_seconds{source_id}
jobs_currently_running
worker_pool_size
workers_busy
workers_idle
queue_depth{priority}
queue_enqueued_total{priority}
queue_dequeued_total{priority}
triggers_fired_total{type}
triggers_matched_total{type}
circuit_breaker_state{domain}
circuit_breaker_trips_total{domain}
is_leader
leader_election_attempts_total
"""


def busy_metrics() -> Scraped:
    """Every series has a sample."""
    metrics = Metrics("crawler")
    job = a_job(source_id="s")
    claim = Claim(job, an_execution(job=job))
    metrics.planned(job, 1)
    metrics.skipped(JobId("a"), SkipReason.OVERLAP, 1)
    for verb in (metrics.enqueued, metrics.dequeued, metrics.redelivered):
        verb(Lane.HIGH, 1)
    metrics.started(claim, timedelta(seconds=1))
    metrics.ended(claim, Completed(), 1.0)
    metrics.lease_lost()
    metrics.triggered("webhook", 1)
    metrics.breaker("example.com", BreakerState.OPEN, True)
    metrics.campaigned()
    metrics.saw(Backlog(depths={Lane.HIGH: 1}))
    return Scraped(metrics.render())


def labels_of(scraped: Scraped) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for family in scraped.families:
        ending = "_total" if family.type == "counter" else ""
        for sample in family.samples:
            labels = set(sample.labels) - {"le"}
            found.setdefault(family.name.removeprefix(PREFIX) + ending, set()).update(labels)
    return found


def page() -> dict[str, tuple[str, set[str]]]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {row[1].strip().strip("`"): (row[2].strip(), set(re.findall(r"`(\w+)`", row[3]))) for row in rows}


def test_the_page_names_every_metric_with_its_kind_and_labels() -> None:
    scraped = busy_metrics()
    labels = labels_of(scraped)
    shown = {
        name: (kind, labels[name]) for name, kind in scraped.names.items() if not name.startswith("process_")
    }
    assert page() == shown


def test_the_names_of_the_first_scheduler_are_all_there_with_their_labels() -> None:
    labels = labels_of(busy_metrics())
    for line in FIRST_SCHEDULER.split("\n"):
        if line:
            name, _, inside = line.partition("{")
            assert labels[name] == set(re.findall(r"\w+", inside)), name


def test_the_first_word_follows_the_namespace() -> None:
    text = Metrics("acme").render().decode()
    assert "acme_scheduler_is_leader 0.0" in text
    assert "crawler" not in text


def test_no_series_tells_when_another_was_made() -> None:
    assert "_created" not in Metrics("crawler").render().decode()
