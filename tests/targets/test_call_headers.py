"""The headers of every HTTP call."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from noonday.domain.outcome import Failed
from noonday.domain.target import FetchTarget, HttpTarget
from noonday.targets import Targets, TargetsConfig, callback_token
from tests.factories import at
from tests.targets.hands import SECRET, WebServer, a_config, a_run, every_target, using, whsec


@pytest.fixture
def config(server: WebServer) -> TargetsConfig:
    return a_config(
        services={"email-service": server.url},
        public_url="https://scheduler.example/",
        connect_timeout=timedelta(seconds=5),
    )


async def test_every_call_carries_the_schedulers_headers(server: WebServer, targets: Targets) -> None:
    due = at("2027-03-01T05:00:00.250Z")
    for target in every_target(server.url):
        run = a_run(target, execution={"attempt": 3, "scheduled_for": due})
        await targets.run(run)
        seen, execution = server.seen[-1], run.claim.execution
        assert seen.headers["x-scheduler-execution-id"] == execution.id
        assert seen.headers["idempotency-key"] == execution.id
        assert seen.headers["x-scheduler-attempt"] == "3"
        assert seen.headers["x-scheduled-for"] == "2027-03-01T05:00:00.250000Z"
        assert re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01", seen.headers["traceparent"])
        assert seen.headers["user-agent"].startswith("noonday/")
        signed = Webhook(whsec(SECRET)).sign(
            execution.id, at_seconds(seen.headers["webhook-timestamp"]), seen.body.decode()
        )
        assert seen.headers["webhook-signature"] == signed
        assert seen.headers["x-scheduler-signature"].startswith(f"t={seen.headers['webhook-timestamp']},v1=")


def at_seconds(text: str) -> Any:
    return at("1970-01-01T00:00:00Z") + timedelta(seconds=int(text))


async def test_the_trace_is_the_executions_and_the_span_the_attempts(
    server: WebServer, targets: Targets
) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for given in (trace, "not a trace", "0" * 32):
        for attempt in (1, 2):
            execution = {"trace_id": given, "attempt": attempt, "id": "01890000-0000-7000-8000-000000000001"}
            await targets.run(a_run(FetchTarget(url=server.url), execution=execution))
    ids = [seen.headers["traceparent"].split("-")[1:3] for seen in server.seen]
    assert ids[0][0] == ids[1][0] == trace
    assert ids[0][1] != ids[1][1]
    assert len({found[0] for found in ids}) == 3


async def test_callback_headers_go_where_a_202_may_come_from(server: WebServer, targets: Targets) -> None:
    for target in every_target(server.url):
        run = a_run(target)
        await targets.run(run)
        headers, execution = server.seen[-1].headers, run.claim.execution
        if isinstance(target, FetchTarget):
            assert not [name for name in headers if "callback" in name]
            continue
        assert headers["x-scheduler-callback-url"] == (
            f"https://scheduler.example/api/v2/executions/{execution.id}/callback"
        )
        assert headers["x-scheduler-callback-token"] == callback_token(
            SECRET, execution.id, execution.attempt
        )


async def test_a_job_cannot_override_the_schedulers_headers(server: WebServer, targets: Targets) -> None:
    stolen = {
        "idempotency-KEY": "mine",
        "X-Scheduler-Attempt": "99",
        "Webhook-Id": "mine",
        "TraceParent": "mine",
        "X-Scheduled-For": "mine",
        "X-Scheduler-Callback-Token": "mine",
        "X-Mine": "kept",
        "User-Agent": "my crawler",
        "Accept": "text/html",
    }
    for target in (HttpTarget(url=server.url, headers=stolen), FetchTarget(url=server.url, headers=stolen)):
        await targets.run(a_run(target))
        headers = server.seen[-1].headers
        assert not [name for name, value in headers.items() if value in {"mine", "99"}]
        assert (headers["x-mine"], headers["user-agent"]) == ("kept", "my crawler")
        assert headers["accept"] == "text/html"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-Evil: 1"},
        {"X-A": "b\nc"},
        {"X-A": "b\x00"},
        {"X-A\r\nX-Evil": "b"},
        {"X A": "b"},
        {"": "b"},
        {"X-Ä": "b"},
        {"Host": "evil"},
        {"Content-Length": "0"},
        {"transfer-encoding": "chunked"},
        {"Connection": "x"},
        {"Proxy-Authorization": "x"},
        {"X-A": "b\x7f"},
    ],
)
async def test_a_header_that_would_change_the_request_is_refused(
    headers: dict[str, str], server: WebServer, targets: Targets
) -> None:
    for target in (HttpTarget(url=server.url, headers=headers), FetchTarget(url=server.url, headers=headers)):
        outcome = await targets.run(a_run(target))
        assert isinstance(outcome, Failed)
        assert not outcome.retryable
        assert "header" in outcome.error
    assert server.seen == []


@pytest.mark.parametrize("text", ["a\r\nX-B: 2", "a\nb", "a\rb", "a\0b"])
async def test_nothing_of_ours_makes_another_header_either(text: str, server: WebServer) -> None:
    for config, execution in (
        (a_config(public_url=f"https://scheduler.example/{text}"), {}),
        (a_config(), {"id": text}),
    ):
        async with using(config) as targets:
            outcome = await targets.run(a_run(HttpTarget(url=server.url), execution=execution))
        assert isinstance(outcome, Failed)
        assert "control character" in outcome.error
    assert server.seen == []
