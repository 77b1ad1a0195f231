"""HTTP calls that are slow, endless, broken or cancelled."""

from __future__ import annotations

import asyncio
import gzip
import socket
from datetime import timedelta

import pytest
from aiohttp import web

from noonday.clock import SystemClock
from noonday.domain.outcome import Completed, Failed, TimedOut
from noonday.domain.target import FetchTarget, HttpTarget
from noonday.targets import Targets, TargetsConfig
from tests.targets.hands import WebServer, a_config, a_run, every_target, using

SHORT = timedelta(seconds=0.3)


@pytest.fixture
def config(server: WebServer) -> TargetsConfig:
    return a_config(
        services={"email-service": server.url},
        public_url="https://scheduler.example/",
        connect_timeout=timedelta(seconds=5),
    )


async def test_no_cookie_wanders_from_one_job_to_the_next(server: WebServer, targets: Targets) -> None:
    server.answers(headers={"Set-Cookie": "session=1; Path=/"})
    for _ in range(2):
        await targets.run(a_run(FetchTarget(url=server.url)))
    assert "cookie" not in server.seen[1].headers


async def test_an_endless_answer_is_read_to_the_bound_and_no_further(server: WebServer) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)
            sent += 65536

    server.handler = endless
    async with using(a_config(max_body_read=1_000_000, services={"email": server.url})) as targets:
        for target in every_target(server.url):
            outcome = await targets.run(a_run(target))
            assert isinstance(outcome, Completed)
            assert outcome.result.metadata["body_cut_at_bytes"] == outcome.result.bytes_received == 1_000_001
            assert len(outcome.result.output_tail or "") <= 65536
    assert sent < 60_000_000


async def test_a_zipped_bomb_is_bounded_after_unpacking(server: WebServer) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    server.answers(body=bomb, headers={"Content-Encoding": "gzip"})
    async with using(a_config(max_body_read=1_000_000)) as targets:
        outcome = await targets.run(a_run(FetchTarget(url=server.url)))
    assert isinstance(outcome, Completed)
    assert outcome.result.bytes_received == 1_000_001


async def test_a_trickled_answer_ends_with_the_attempts_timeout(server: WebServer, targets: Targets) -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b".")
            await asyncio.sleep(0.02)

    server.handler = trickle
    for target in every_target(server.url):
        outcome = await targets.run(a_run(target, timeout=SHORT))
        assert isinstance(outcome, TimedOut)
        assert outcome.after == SHORT
        assert outcome.result.status_code == 200
        assert (outcome.result.bytes_received or 0) > 0


async def test_a_target_that_never_answers_times_out(server: WebServer, targets: Targets) -> None:
    async def silence(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.handler = silence
    outcome = await targets.run(a_run(HttpTarget(url=server.url), timeout=SHORT))
    assert isinstance(outcome, TimedOut)
    assert outcome.result.status_code is None


async def test_a_refused_connection_is_worth_a_retry(targets: Targets) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = taken.getsockname()[1]
        outcome = await targets.run(a_run(FetchTarget(url=f"http://127.0.0.1:{port}/?key=secret")))
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert f"could not connect to 127.0.0.1:{port}" in outcome.error
    assert "secret" not in outcome.error


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "failed"),
    ],
)
async def test_a_broken_answer_is_worth_a_retry(said: bytes, words: str, targets: Targets) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        outcome = await targets.run(a_run(FetchTarget(url=f"http://127.0.0.1:{port}/?key=secret")))
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert words in outcome.error
    assert "secret" not in outcome.error


async def test_no_more_calls_than_allowed_are_in_flight_to_one_host(server: WebServer) -> None:
    inside, most, together = 0, 0, asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 2:
            together.set()
        await together.wait()
        await asyncio.sleep(0)
        inside -= 1
        return web.Response()

    server.handler = slow
    async with using(a_config(per_host_limit=2)) as targets:
        await asyncio.gather(*(targets.run(a_run(FetchTarget(url=server.url))) for _ in range(8)))
    assert (most, len(server.seen)) == (2, 8)


async def test_a_slow_host_does_not_hold_up_another(server: WebServer) -> None:
    async def silence(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.handler = silence
    async with using(a_config(per_host_limit=1)) as targets, WebServer() as other:
        stuck = [asyncio.ensure_future(targets.run(a_run(FetchTarget(url=server.url)))) for _ in range(3)]
        await server.arrived.wait()
        assert isinstance(await targets.run(a_run(FetchTarget(url=other.url))), Completed)
        for task in stuck:
            task.cancel()
        await asyncio.wait(stuck)


@pytest.mark.parametrize("kind", [HttpTarget, FetchTarget])
async def test_cancelling_closes_the_socket(kind: type[HttpTarget | FetchTarget], targets: Targets) -> None:
    began, hung_up = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        began.set()
        await reader.read()
        hung_up.set()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as listener:
        run = a_run(kind(url=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"))
        task = asyncio.ensure_future(targets.run(run))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await hung_up.wait()
    assert run.partial.metadata["timing_ms"]["total"] >= 0


class TellingClock(SystemClock):
    """Tells when the head of an answer was read: the caller then looks at the clock for the second time."""

    def __init__(self) -> None:
        self.looks = 0
        self.head_read = asyncio.Event()

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks == 2:
            self.head_read.set()
        return super().monotonic()


async def test_a_cancelled_call_keeps_what_is_known(server: WebServer) -> None:
    async def halfway(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        await asyncio.Event().wait()
        raise AssertionError

    server.handler = halfway
    clock = TellingClock()
    async with using(a_config(clock=clock)) as targets:
        run = a_run(FetchTarget(url=server.url))
        task = asyncio.ensure_future(targets.run(run))
        await clock.head_read.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert run.partial.status_code == 200
    assert run.partial.bytes_received in (0, 4)
    assert set(run.partial.metadata["timing_ms"]) == {"first_byte", "total"}
