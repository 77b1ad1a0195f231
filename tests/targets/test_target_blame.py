"""Whom a failure blames: the target, nobody, or a target that plainly lives; and whose breaker it is."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from datetime import timedelta

import pytest
from yarl import URL

from noonday.domain.outcome import NOTHING, Failed, TimedOut
from noonday.domain.target import CommandTarget, FetchTarget, HttpTarget, PythonTarget, ServiceTarget, Target
from noonday.http_client import NoConnection, NotTrusted
from noonday.targets import Targets
from noonday.targets.calls import _broken
from noonday.targets.network import NetworkPolicy, domain_of
from tests.factories import a_job
from tests.targets.hands import WebServer, a_config, a_run, every_target, using


async def down(targets: Targets, target: Target) -> bool | None:
    outcome = await targets.run(a_run(target))
    assert isinstance(outcome, Failed)
    return outcome.down


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
async def test_a_server_error_blames_the_target(server: WebServer, status: int) -> None:
    server.answers(status=status)
    async with using(a_config(services={"email": server.url})) as targets:
        for target in every_target(server.url):
            assert await down(targets, target) is True


@pytest.mark.parametrize("status", [301, 400, 401, 404, 408, 410, 429])
async def test_a_refusal_is_an_answer_of_a_target_that_lives(server: WebServer, status: int) -> None:
    server.answers(status=status)
    async with using(a_config(services={"email": server.url})) as targets:
        for target in every_target(server.url):
            assert await down(targets, target) is False


@pytest.mark.parametrize("answer", [{"success": False}, {"success": "maybe"}])
async def test_a_service_that_says_no_lives(server: WebServer, answer: dict[str, object]) -> None:
    server.answers(json=answer)
    async with using(a_config(services={"email": server.url})) as targets:
        assert await down(targets, ServiceTarget(service="email", endpoint="/")) is False


async def test_nobody_at_home_blames_the_target(targets: Targets) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert await down(targets, HttpTarget(url=f"http://127.0.0.1:{free.getsockname()[1]}/")) is True


async def test_a_name_that_does_not_exist_blames_the_target(targets: Targets) -> None:
    assert await down(targets, HttpTarget(url="http://no-such-host.invalid/")) is True


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", b"what?\r\n\r\n"]
)
async def test_a_broken_answer_blames_the_target(targets: Targets, said: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await down(targets, HttpTarget(url=f"http://127.0.0.1:{port}/")) is True


async def test_plain_text_where_tls_is_spoken_blames_the_target(server: WebServer, targets: Targets) -> None:
    assert await down(targets, HttpTarget(url=f"https://127.0.0.1:{server.port}/")) is True


async def test_a_target_that_hangs_times_out(server: WebServer, targets: Targets) -> None:
    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    server.handler = hang  # type: ignore[assignment]
    run = a_run(HttpTarget(url=server.url), timeout=timedelta(milliseconds=100))
    assert isinstance(await targets.run(run), TimedOut)


async def test_what_was_never_called_blames_nobody(server: WebServer) -> None:
    policy = NetworkPolicy(mode="strict", allow=("example.com",))
    async with using(a_config(networks=policy)) as targets:
        for target in (
            HttpTarget(url=server.url),
            HttpTarget(url="http://example.com/", method="TRACE"),
            HttpTarget(url="ftp://example.com/"),
            ServiceTarget(service="unknown", endpoint="/"),
        ):
            assert await down(targets, target) is None
    assert server.seen == []


def test_what_this_machine_has_run_out_of_blames_nobody() -> None:
    url = URL("http://a.test/")
    for number, blamed in [(errno.EMFILE, None), (errno.EADDRNOTAVAIL, None), (errno.ECONNREFUSED, True)]:
        assert _broken(url, NoConnection(OSError(number, "why")), NOTHING).down is blamed
    assert _broken(url, ValueError("a bad header"), NOTHING).down is None
    assert _broken(url, NotTrusted(ssl.SSLCertVerificationError("expired")), NOTHING).down is True


def test_the_words_of_the_client_do_not_tell_the_url() -> None:
    url = URL("http://a.test/hook?key=secret")
    failed = _broken(url, OSError(errno.EPIPE, f"Can not write to {url}"), NOTHING)
    assert failed.down is True
    assert "Can not write to a.test:80" in failed.error
    assert "secret" not in failed.error


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("http://Example.COM/path?x=1", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("http://example.com.:80/", "example.com"),
        ("http://example.com:443/", "example.com:443"),
        ("http://example.com:8080/", "example.com:8080"),
        ("http://[::1]:9000/", "[::1]:9000"),
        ("http://[0:0::1]/", "[::1]"),
        ("http://0x7f000001:9/", "127.0.0.1:9"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("ftp://example.com/", None),
        ("http://user@example.com/", None),
        ("http://", None),
        ("nonsense", None),
        ("http://x:99999/", None),
    ],
)
def test_a_domain_is_the_host_with_a_port_that_is_not_the_schemes_own(url: str, domain: str | None) -> None:
    assert domain_of(url) == domain


async def test_each_kind_of_target_knows_its_domain() -> None:
    async with using(a_config(services={"email": "https://mail.test:8443/base"})) as targets:
        asked: list[tuple[Target, str | None]] = [
            (HttpTarget(url="http://a.test/"), "a.test"),
            (FetchTarget(url="http://a.test:81/"), "a.test:81"),
            (ServiceTarget(service="email", endpoint="/x"), "mail.test:8443"),
            (ServiceTarget(service="unknown", endpoint="/x"), None),
            (PythonTarget(task="x"), None),
            (CommandTarget(argv=("true",)), None),
        ]
        for target, domain in asked:
            assert targets.domain_of(a_job(target=target)) == domain
