"""Calls of any kind, and targets that answer 202 and go on by themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.outcome import Accepted, Completed, Failed
from noonday.domain.target import FetchTarget, HttpTarget, ServiceTarget
from noonday.targets import Targets, TargetsConfig
from tests.factories import a_running_execution
from tests.targets.hands import WebServer, a_config, a_run, using


@pytest.fixture
def config(server: WebServer) -> TargetsConfig:
    return a_config(
        services={"email-service": server.url},
        public_url="https://scheduler.example/",
        connect_timeout=timedelta(seconds=5),
    )


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        (None, b"", None),
        ("as it is", b"as it is", "text/plain; charset=utf-8"),
        ({"a": "ü"}, '{"a": "ü"}'.encode(), "application/json"),
        ([1], b"[1]", "application/json"),
        (0, b"0", "application/json"),
        ("", b"", None),
    ],
)
async def test_http_sends_method_body_and_type(
    body: Any, sent: bytes, kind: str | None, server: WebServer, targets: Targets
) -> None:
    assert isinstance(
        await targets.run(a_run(HttpTarget(url=f"{server.url}/a?b=c%20d", method="put", body=body))),
        Completed,
    )
    seen = server.seen[0]
    assert (seen.method, seen.path, seen.body) == ("PUT", "/a?b=c%20d", sent)
    if sent:
        assert seen.headers.get("content-type") == kind


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "", "GET /x", "G\r\nX", "PÜT"])
async def test_a_method_that_is_none_is_refused(method: str, server: WebServer, targets: Targets) -> None:
    outcome = await targets.run(a_run(HttpTarget(url=server.url, method=method)))
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert server.seen == []


async def test_http_keeps_status_bytes_value_and_timing(server: WebServer, targets: Targets) -> None:
    server.answers(status=201, json={"id": 7, "items_processed": 2})
    outcome = await targets.run(a_run(HttpTarget(url=server.url)))
    assert isinstance(outcome, Completed)
    result = outcome.result
    assert (result.status_code, result.value, result.items_processed) == (
        201,
        {"id": 7, "items_processed": 2},
        2,
    )
    assert result.bytes_received == len(b'{"id": 7, "items_processed": 2}')
    assert set(result.metadata["timing_ms"]) == {"first_byte", "total"}


async def test_202_hands_the_run_over(server: WebServer, targets: Targets) -> None:
    server.answers(status=202, json={"cancel_url": f"{server.url}/runs/1", "heartbeat_seconds": 20})
    for target in (HttpTarget(url=server.url), ServiceTarget(service="email", endpoint="/jobs/x")):
        outcome = await targets.run(a_run(target))
        assert isinstance(outcome, Accepted)
        assert outcome.heartbeat == timedelta(seconds=20)
        assert outcome.cancel_url == f"{server.url}/runs/1"


async def test_202_is_an_ordinary_answer_where_it_is_expected_or_nobody_could_call_back(
    server: WebServer,
) -> None:
    server.answers(status=202)
    async with using(a_config(public_url="http://scheduler.example")) as targets:
        assert isinstance(
            await targets.run(a_run(HttpTarget(url=server.url, expected_status=(202,)))), Completed
        )
        assert isinstance(await targets.run(a_run(FetchTarget(url=server.url))), Completed)
    async with using(a_config()) as targets:
        assert isinstance(await targets.run(a_run(HttpTarget(url=server.url))), Completed)
        assert "x-scheduler-callback-url" not in server.seen[-1].headers


async def test_a_202_with_a_verdict_is_over(server: WebServer, targets: Targets) -> None:
    server.answers(
        status=202, json={"success": True, "itemsProcessed": 1, "itemsSucceeded": 1, "itemsFailed": 0}
    )
    outcome = await targets.run(a_run(ServiceTarget(service="email", endpoint="/jobs/x")))
    assert isinstance(outcome, Completed)


@pytest.mark.parametrize(
    ("status", "heard"), [(200, True), (204, True), (404, True), (410, True), (500, False)]
)
async def test_a_remote_run_is_cancelled_by_delete(
    status: int, heard: bool, server: WebServer, targets: Targets
) -> None:
    server.answers(status=status)
    execution = a_running_execution(remote=True, cancel_url=f"{server.url}/runs/9", attempt=2)
    assert await targets.cancel_remote(execution) is heard
    seen = server.seen[0]
    assert (seen.method, seen.path, seen.headers["idempotency-key"]) == ("DELETE", "/runs/9", execution.id)
    assert seen.headers["x-scheduler-attempt"] == "2"


async def test_a_remote_run_that_cannot_be_told_is_no_error(targets: Targets) -> None:
    for url in (None, "http://169.254.169.254/x", "nonsense", "http://127.0.0.1:1/"):
        assert not await targets.cancel_remote(a_running_execution(cancel_url=url))


async def test_config_that_is_not_json_fails_at_once(server: WebServer, targets: Targets) -> None:
    for target in (
        HttpTarget(url=server.url, body={"a": float("nan")}),
        HttpTarget(url=server.url, body={"a": object()}),
    ):
        outcome = await targets.run(a_run(target))
        assert isinstance(outcome, Failed)
        assert not outcome.retryable
    assert server.seen == []


async def test_close_is_safe_before_and_after_use(server: WebServer) -> None:
    targets = Targets(a_config())
    await targets.close()
    await targets.run(a_run(FetchTarget(url=server.url)))
    await targets.close()
    await targets.close()
