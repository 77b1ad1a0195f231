"""When the client tries again, what it sends then, and what it makes of each end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.client import (
    NO_RETRIES,
    AsyncNoondayClient,
    NoondayClient,
    Retries,
    TooMany,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
)

QUICK = Retries(attempts=4, first=0.001, longest=0.01)
LIVE = {"status": "alive"}
STARTED = {"message": "the job will run now", "job_id": "1", "execution_id": "2"}
Step = Callable[[httpx2.Request], httpx2.Response]


class Script:
    """A server that does one thing after the other; `requests` is what it was sent."""

    def __init__(self, *steps: Step) -> None:
        self.steps: Iterator[Step] = iter(steps)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return next(self.steps)(request)

    def client(self, retries: Retries = QUICK) -> NoondayClient:
        return NoondayClient("http://localhost", retries=retries, transport=httpx2.MockTransport(self))


def says(status: int, body: Any = None, **headers: str) -> Step:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx2.Response(status, json=body, headers=shown)


def breaks(error: type[httpx2.TransportError]) -> Step:
    def broken(request: httpx2.Request) -> httpx2.Response:
        raise error("the line is cut", request=request)

    return broken


BUSY = says(503, {"title": "Service Unavailable", "detail": "the database is away"})


def test_it_asks_again_while_the_server_is_busy() -> None:
    script = Script(BUSY, says(429), says(502), says(200, LIVE))
    with script.client() as client:
        assert client.health.live().status == "alive"
    assert len(script.requests) == 4


def test_it_gives_up_and_says_what_the_server_said() -> None:
    script = Script(*[BUSY] * 4)
    with script.client() as client, pytest.raises(Unavailable, match="the database is away"):
        client.health.live()
    assert len(script.requests) == 4


def test_it_does_not_ask_again_what_stays_wrong() -> None:
    for status in (400, 401, 403, 404, 409, 412, 422, 500):
        script = Script(says(status, {"detail": "no"}))
        with script.client() as client, pytest.raises(Exception, match=f"{status} Refused: no"):
            client.jobs.read("x")


def test_it_waits_as_long_as_the_server_asks_but_not_longer_than_it_may() -> None:
    script = Script(says(429, Retry_After="0"), says(200, LIVE))
    with script.client() as client:
        client.health.live()
    script = Script(says(429, {"detail": "slow down"}, Retry_After="60"))
    with script.client() as client, pytest.raises(TooMany) as many:
        client.health.live()
    assert many.value.retry_after == 60


def test_a_post_is_repeated_with_the_same_key() -> None:
    script = Script(breaks(httpx2.ReadTimeout), breaks(httpx2.RemoteProtocolError), says(202, STARTED))
    with script.client() as client:
        client.jobs.force_run("x")
        keys = {request.headers["idempotency-key"] for request in script.requests}
        assert len(script.requests) == 3
        assert len(keys) == 1
        script.steps = iter([says(202, STARTED)])
        client.jobs.force_run("x")
    assert script.requests[-1].headers["idempotency-key"] not in keys, "another call, another key"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.jobs.delete("x"),
        lambda client: client.jobs.patch("x", {"priority": 1}),
        lambda client: client.jobs.change("x", {"priority": 1}, if_match='"3"'),
        lambda client: client.access.create({"name": "ada", "role": "admin"}),
    ],
    ids=["delete", "patch", "if-match", "no key"],
)
def test_what_may_have_arrived_is_not_repeated_where_twice_is_not_once(
    call: Callable[[NoondayClient], object],
) -> None:
    script = Script(breaks(httpx2.ReadError))
    with script.client() as client, pytest.raises(Unreachable, match="the line is cut"):
        call(client)
    script = Script(breaks(httpx2.ConnectError), breaks(httpx2.ReadError))
    with script.client() as client, pytest.raises(Unreachable):
        call(client)
    assert len(script.requests) == 2, "the first one did not arrive"


def test_without_retries_the_first_end_stands() -> None:
    script = Script(BUSY)
    with script.client(NO_RETRIES) as client, pytest.raises(Unavailable):
        client.health.live()


async def test_the_async_client_tries_again_too() -> None:
    script = Script(BUSY, breaks(httpx2.ConnectTimeout), says(200, LIVE))
    transport = httpx2.MockTransport(script)
    async with AsyncNoondayClient("http://localhost", retries=QUICK, transport=transport) as client:
        assert (await client.health.live()).status == "alive"
        script.steps = iter([breaks(httpx2.ConnectError)] * 4)
        with pytest.raises(Unreachable):
            await client.health.live()
    assert len(script.requests) == 7


def test_it_says_when_an_answer_is_not_one_of_noondays() -> None:
    for step in (
        lambda _: httpx2.Response(200, text="<html>a proxy</html>"),
        says(200, {"state": "alive"}),
        says(200, ["alive"]),
        says(302, Location="http://elsewhere/"),
    ):
        with Script(step).client() as client, pytest.raises(UnexpectedAnswer):
            client.health.live()
    page = Script(lambda _: httpx2.Response(502, text="<html>bad gateway</html>"))
    with page.client(NO_RETRIES) as client, pytest.raises(Unavailable, match="bad gateway"):
        client.health.live()


def test_it_sends_what_was_meant() -> None:
    script = Script(says(202, STARTED), says(200, {"jobs": [], "total": 0, "limit": 5, "offset": 0}))
    with script.client() as client:
        client.jobs.force_run("a/b c", {"config": {"at": datetime(2027, 1, 4, tzinfo=UTC)}}, wait=3)
        client.jobs.find(enabled=False, limit=5)
    run, find = script.requests
    assert run.url.raw_path == b"/api/v2/jobs/a%2Fb%20c/force-run"
    assert run.headers["prefer"] == "wait=3"
    assert run.extensions["timeout"]["read"] == 33, "longer than the server was asked to wait"
    assert json.loads(run.content) == {"config": {"at": "2027-01-04T00:00:00+00:00"}}
    assert dict(find.url.params) == {"enabled": "false", "limit": "5"}
    assert "idempotency-key" not in find.headers
    assert find.headers["user-agent"].startswith("noonday-client/")
    with script.client() as client, pytest.raises(TypeError, match="cannot be sent as JSON"):
        client.jobs.force_run("x", {"config": {"a": object()}})


@given(attempt=st.integers(1, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_delays_grow_and_stay_within_bounds(attempt: int, chance: float) -> None:
    retries = Retries(first=0.25, longest=10)
    delay = retries.delay(attempt, chance)
    assert 0.125 <= delay <= 10
    assert retries.delay(attempt + 1, chance) >= delay
    assert retries.after_silence(attempt, chance, repeatable=False) is None
    assert (retries.after_status(attempt, 503, None, chance) is None) == (attempt >= retries.attempts)
