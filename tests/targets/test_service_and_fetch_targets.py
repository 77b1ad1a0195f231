"""Services with JobContext and JobResult, and plain fetches."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from noonday.domain.execution import Cause
from noonday.domain.outcome import Completed, Failed
from noonday.domain.services import variable_of
from noonday.domain.target import FetchTarget, ServiceTarget
from noonday.targets import Targets, TargetsConfig
from tests.targets.hands import WebServer, a_config, a_run, using


@pytest.fixture
def config(server: WebServer) -> TargetsConfig:
    return a_config(
        services={"email-service": server.url},
        public_url="https://scheduler.example/",
        connect_timeout=timedelta(seconds=5),
    )


async def test_a_service_gets_the_job_context(server: WebServer, targets: Targets) -> None:
    server.answers(
        json={
            "success": True,
            "itemsProcessed": 3,
            "itemsSucceeded": 2,
            "itemsFailed": 1,
            "metadata": {"k": "v"},
        }
    )
    target = ServiceTarget(service="email-service", endpoint="/api/jobs/weekly-digest?x=1")
    run = a_run(target, job={"name": "weekly-digest", "config": {"batchSize": 100}})
    outcome = await targets.run(run)
    seen = server.seen[0]
    assert (seen.method, seen.path) == ("POST", "/api/jobs/weekly-digest?x=1")
    assert seen.headers["content-type"] == "application/json"
    assert json.loads(seen.body) == {
        "jobName": "weekly-digest",
        "config": {"batchSize": 100},
        "executionId": run.claim.execution.id,
        "triggeredBy": "scheduler",
    }
    assert isinstance(outcome, Completed)
    assert (outcome.result.items_processed, outcome.result.items_succeeded, outcome.result.items_failed) == (
        3,
        2,
        1,
    )
    assert outcome.result.metadata["k"] == "v"


@pytest.mark.parametrize(
    ("cause", "word"),
    [
        (Cause.SCHEDULE, "scheduler"),
        (Cause.TRIGGER, "scheduler"),
        (Cause.UPSTREAM, "scheduler"),
        (Cause.MANUAL, "manual"),
        (Cause.ADMIN, "admin"),
        (Cause.BACKFILL, "admin"),
    ],
)
async def test_a_service_hears_who_asked(
    cause: Cause, word: str, server: WebServer, targets: Targets
) -> None:
    execution = {"cause": cause, "triggered_by": "ann", "config": {"given": "by trigger"}}
    run = a_run(
        ServiceTarget(service="email", endpoint="/x"), job={"config": {"own": 1}}, execution=execution
    )
    await targets.run(run)
    context = json.loads(server.seen[0].body)
    assert (context["triggeredBy"], context["triggeredByUser"], context["config"]) == (
        word,
        "ann",
        {"given": "by trigger"},
    )


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("email-service", "EMAIL_SERVICE_URL"),
        ("email", "EMAIL_SERVICE_URL"),
        ("user data-service", "USER_DATA_SERVICE_URL"),
        ("EMAIL_SERVICE_URL", "EMAIL_SERVICE_URL"),
        ("crawler_service", "CRAWLER_SERVICE_URL"),
        ("a.b", "A_B_SERVICE_URL"),
    ],
)
def test_a_services_name_gives_its_variable(name: str, variable: str) -> None:
    assert variable_of(name) == variable


async def test_a_service_without_url_fails_at_once_and_names_the_variable(targets: Targets) -> None:
    outcome = await targets.run(a_run(ServiceTarget(service="billing-service", endpoint="/x")))
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert "BILLING_SERVICE_URL" in outcome.error


async def test_a_services_base_may_have_a_path(server: WebServer) -> None:
    async with using(a_config(services={"EMAIL_SERVICE_URL": f"{server.url}/base/"})) as targets:
        await targets.run(a_run(ServiceTarget(service="email", endpoint="/jobs")))
    assert server.seen[0].path == "/base/jobs"


async def test_fetch_keeps_figures_and_not_the_page(server: WebServer, targets: Targets) -> None:
    server.answers(text="<html>" + "x" * 5000, headers={"ETag": '"v1"'})
    outcome = await targets.run(a_run(FetchTarget(url=f"{server.url}/page")))
    assert server.seen[0].method == "GET"
    assert isinstance(outcome, Completed)
    result = outcome.result
    assert (result.status_code, result.bytes_received, result.output_tail, result.value) == (
        200,
        5006,
        None,
        None,
    )
    assert result.metadata["etag"] == '"v1"'
    server.answers(json={"items_crawled": 12, "items_indexed": 11})
    outcome = await targets.run(a_run(FetchTarget(url=server.url)))
    assert isinstance(outcome, Completed)
    assert (outcome.result.items_processed, outcome.result.items_succeeded) == (12, 11)


async def test_a_failed_fetch_keeps_the_beginning_of_the_answer(server: WebServer, targets: Targets) -> None:
    server.answers(status=503, text="busy " * 10_000, headers={"Retry-After": "30"})
    outcome = await targets.run(a_run(FetchTarget(url=server.url)))
    assert isinstance(outcome, Failed)
    assert outcome.retry_after == timedelta(seconds=30)
    assert len(outcome.result.output_tail or "") <= 2048
    assert len(outcome.error) <= 500
