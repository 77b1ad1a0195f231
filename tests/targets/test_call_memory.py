"""What is remembered from one call to the next, and what must not be."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Completed, Failed
from noonday.domain.target import FetchTarget, HttpTarget, ServiceTarget
from noonday.http_client import AddrInfo
from noonday.targets import NetworkPolicy, Targets, callback_token
from noonday.targets.bounds import NotJson, kept_answer, kept_json, parse_json, plain_json
from noonday.targets.calls import Caller
from noonday.targets.http import http_call
from noonday.targets.network import Refused, vet
from noonday.targets.prepared import Prepared, Preparer, Remembered
from noonday.targets.resolver import VettingResolver
from tests.targets.hands import WebServer, a_config, a_run, signed, using


class Names:
    """A name server whose answer a test may change."""

    def __init__(self) -> None:
        self.address = "127.0.0.1"
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[AddrInfo]:
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.address, port))]


async def test_an_address_that_turns_private_is_found_at_the_next_connection(server: WebServer) -> None:
    names, config = Names(), a_config()
    resolver = VettingResolver(config.networks, timedelta(seconds=5), names)
    targets = Targets(config, Caller(config, resolver))
    server.answers(text="fine", headers={"Connection": "close"})
    run = a_run(FetchTarget(url=f"http://rebinding.example:{server.port}/"))
    try:
        for _ in range(2):
            assert isinstance(await targets.run(run), Completed)
        names.address = "169.254.169.254"
        outcome = await targets.run(run)
    finally:
        await targets.close()
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert (names.asked, len(server.seen)) == (3, 2)


async def test_an_address_that_is_allowed_here_is_still_refused_there(server: WebServer) -> None:
    run = a_run(FetchTarget(url=server.url))
    strict = NetworkPolicy(mode="strict", allow=("192.0.2.0/24",))
    for policy, passes in ((NetworkPolicy(), True), (strict, False), (NetworkPolicy(), True)):
        async with using(a_config(networks=policy)) as targets:
            assert isinstance(await targets.run(run), Completed) is passes
    assert len(server.seen) == 2


def test_a_host_that_was_allowed_does_not_open_another_port_or_spelling() -> None:
    policy = NetworkPolicy(ports=frozenset({80}), deny=("10.0.0.0/8",))
    vet("http://127.0.0.1/a", policy)
    for url in (
        "http://127.0.0.1:81/a",
        "http://me@127.0.0.1/a",
        "http://127.0.0.1\\@10.0.0.1/",
        "ftp://127.0.0.1/",
    ):
        with pytest.raises(Refused):
            vet(url, policy)
    assert vet("http://0x7f.1/b", policy).raw_authority == "127.0.0.1"


async def test_a_changed_target_is_called_as_it_is_now(server: WebServer) -> None:
    async with using(a_config(services={"mail": f"{server.url}/base"})) as targets:
        for path, team in (("/a", "one"), ("/b", "one"), ("/b", "two")):
            target = HttpTarget(url=server.url + path, headers={"X-Team": team}, body={"team": team})
            await targets.run(a_run(target))
            seen = server.seen[-1]
            assert (seen.path, seen.headers["x-team"], json.loads(seen.body)) == (path, team, {"team": team})
        for endpoint in ("/c", "/d"):
            await targets.run(a_run(ServiceTarget(service="mail", endpoint=endpoint)))
            assert server.seen[-1].path == f"/base{endpoint}"


async def test_a_changed_secret_signs_at_once(server: WebServer) -> None:
    run = a_run(HttpTarget(url=server.url, body="text"))
    for secret in (b"a" * 32, b"b" * 32, b"a" * 32):
        async with using(a_config(signing_secret=secret)) as targets:
            await targets.run(run)
        headers = server.seen[-1].headers
        message = f"{run.claim.execution.id}.{headers['webhook-timestamp']}.text".encode()
        digest = hmac.new(secret, message, hashlib.sha256).hexdigest()
        assert headers["x-scheduler-signature"].endswith(f"v1={digest}")


@given(st.binary(min_size=1, max_size=200), st.binary(max_size=200))
def test_it_signs_as_the_standard_library_does(secret: bytes, body: bytes) -> None:
    at = datetime(2027, 1, 1, tzinfo=UTC)
    expected = hmac.new(secret, f"id.{int(at.timestamp())}.".encode() + body, hashlib.sha256).hexdigest()
    for _ in range(2):
        assert signed([secret], "id", at, body)["X-Scheduler-Signature"].endswith(f",v1={expected}")
    assert callback_token(secret, ExecutionId("id"), 1) != callback_token(secret + b"x", ExecutionId("id"), 1)


async def test_a_header_given_twice_is_sent_once_the_last_of_them(server: WebServer) -> None:
    headers = {
        "X-A": "1",
        "accept": "text/plain",
        "x-a": "2",
        "Accept": "text/html",
        "content-type": "text/x",
    }
    async with using(a_config()) as targets:
        await targets.run(a_run(HttpTarget(url=server.url, headers=headers, body={"a": 1})))
    seen = server.seen[0].headers
    assert (seen["x-a"], seen["accept"], seen["content-type"]) == ("2", "text/html", "text/x")


async def test_no_type_is_made_up_for_an_empty_body(server: WebServer) -> None:
    async with using(a_config()) as targets:
        for target in (
            HttpTarget(url=server.url),
            HttpTarget(url=server.url, method="PUT"),
            HttpTarget(url=server.url, method="GET"),
            FetchTarget(url=server.url),
        ):
            await targets.run(a_run(target))
            assert "content-type" not in server.seen[-1].headers


async def test_a_connection_is_used_again_once_its_answer_was_read_to_the_end(server: WebServer) -> None:
    peers: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response(body=b"x" * (20_000_000 if request.path == "/long" else 10))

    server.handler = answer
    async with using(a_config(max_body_read=1_000)) as targets:
        for path in ("/", "/", "/long", "/"):
            body = None if len(peers) == 1 else {"a": 1}
            assert isinstance(
                await targets.run(a_run(HttpTarget(url=server.url + path, body=body))), Completed
            )
    assert peers[0] == peers[1] == peers[2] != peers[3]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = [HEAD + b"Content-Length: 7\r\n\r\n" + b'{"a":1}']
LATE = [HEAD + b"Content-Length: 7\r\n\r\n", b'{"a":1}']
PIECES = [HEAD + b"Content-Length: 7\r\n\r\n{", b'"a":', b"1}"]
CHUNKS = [HEAD + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a', b'\r\n4\r\n":1}\r\n', b"0\r\n\r\n"]


async def test_an_answer_is_the_same_however_it_comes_and_its_connection_is_kept() -> None:
    answers = [WHOLE, LATE, PIECES, CHUNKS, [b"HTTP/1.1 204 Nothing\r\n\r\n"], WHOLE]
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for first, *others in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(first)
            for piece in others:
                await asyncio.sleep(0.01)  # or they would come as one
                writer.write(piece)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener, using(a_config()) as targets:
        run = a_run(HttpTarget(url=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"))
        outcomes: list[Any] = [await targets.run(run) for _ in answers]
    assert [outcome.result.value for outcome in outcomes] == [{"a": 1}] * 4 + [None, {"a": 1}]
    assert [outcome.result.bytes_received for outcome in outcomes] == [7, 7, 7, 7, 0, 7]
    assert connections == 1


@pytest.mark.parametrize("blanks", ["", " ", "\r\n\t "])
def test_blanks_may_stand_around_json_and_nothing_else(blanks: str) -> None:
    assert parse_json(f'{blanks}{{"a": 1}}{blanks}'.encode()) == {"a": 1}
    for text in (f"1{blanks}x", f"{{}}{blanks}{{}}", blanks, f"1{blanks}\x0c", f"\x0b{blanks}1"):
        with pytest.raises(NotJson):
            parse_json(text.encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON, st.booleans(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"]))
def test_an_answer_is_cleaned_however_it_is_written(value: Any, ascii_only: bool, encoding: str) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode(encoding, "surrogatepass")
    assert parse_json(data) == plain_json(json.loads(data))
    plain = parse_json(data)
    assert kept_answer(plain, len(data), 60) == kept_json(plain, 60)


@pytest.mark.parametrize("shape", ["[{}]", '{{"a":{}}}'])
@pytest.mark.parametrize("inside", ["1", "[]", "NaN", "-Infinity", "1e999", "1.5", '"\\u0000"', '"\\ud800"'])
@pytest.mark.parametrize("depth", [1, 62, 63, 64, 65])
def test_an_answer_is_as_deep_and_clean_as_any_value(shape: str, inside: str, depth: int) -> None:
    text = inside
    for _ in range(depth):
        text = shape.format(text)
    try:
        expected = plain_json(json.loads(text))
    except NotJson:
        with pytest.raises(NotJson):
            parse_json(text.encode())
    else:
        assert parse_json(text.encode()) == expected


@pytest.mark.parametrize("item", ["1e15", "-1e15", "NaN", "{}", "0", '"\\u0000"', '"\\ud800"', "1E15"])
def test_no_short_answer_grows_beyond_what_is_kept(item: str) -> None:
    data = ("[" + ",".join([item] * 1500) + "]").encode()[: 64 * 1024]
    plain = parse_json(data)
    assert len(json.dumps(plain, ensure_ascii=False).encode()) <= 8 * len(data)
    assert kept_answer(plain, len(data)) == kept_json(plain)


async def test_calls_in_flight_end_when_the_client_closes(server: WebServer) -> None:
    async def silence(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.handler = silence
    targets = Targets(a_config())
    running = asyncio.ensure_future(targets.run(a_run(HttpTarget(url=server.url))))
    await server.arrived.wait()
    await targets.close()
    assert isinstance(await running, Failed)


async def test_a_target_that_is_called_again_is_called_for_its_new_run(server: WebServer) -> None:
    target = HttpTarget(url=server.url, headers={"X-A": "1"}, body={"a": 1})
    async with using(a_config(public_url="https://scheduler.example")) as targets:
        runs = [a_run(target, execution={"attempt": attempt}) for attempt in (1, 2)]
        for run in runs:
            await targets.run(run)
    for run, seen in zip(runs, server.seen, strict=True):
        assert (seen.body, seen.headers["x-a"]) == (b'{"a": 1}', "1")
        assert seen.headers["x-scheduler-attempt"] == str(run.claim.execution.attempt)
        assert run.claim.execution.id in seen.headers["x-scheduler-callback-url"]
    for name in ("webhook-id", "webhook-signature", "x-scheduler-callback-token", "traceparent"):
        assert server.seen[0].headers[name] != server.seen[1].headers[name]


def a_memory() -> tuple[Remembered[HttpTarget], list[HttpTarget]]:
    """And what it had to prepare."""
    prepared: list[HttpTarget] = []
    prepare = Preparer(a_config()).prepare

    def make(target: HttpTarget) -> Prepared:
        prepared.append(target)
        return prepare(http_call(target))

    return Remembered(make), prepared


def test_the_same_target_is_prepared_once_and_one_that_is_like_it_again() -> None:
    calls, prepared = a_memory()
    one, other = HttpTarget(url="http://ex.test/"), HttpTarget(url="http://ex.test/")
    assert calls.of(one) is calls.of(one)
    assert calls.of(other) is not calls.of(one)
    assert len(prepared) == 2


def test_what_is_large_is_not_remembered_nor_what_is_refused() -> None:
    calls, prepared = a_memory()
    for large in ({"body": "x" * 100_000}, {"headers": {"X-A": "x" * 100_000}}):
        target = HttpTarget(url="http://ex.test/", **large)
        assert calls.of(target) is not calls.of(target)
    refused = HttpTarget(url="http://169.254.169.254/")
    for _ in range(2):
        with pytest.raises(Refused):
            calls.of(refused)
    assert (len(calls), len(prepared)) == (0, 6)


def test_only_so_many_targets_are_remembered() -> None:
    calls, _ = a_memory()
    for number in range(3_000):
        assert calls.of(HttpTarget(url=f"http://ex.test/{number}")).url.path == f"/{number}"
    assert len(calls) <= 1024
