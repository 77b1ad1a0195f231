"""Calls that really connect: redirects, names that resolve to something else, endpoints that climb."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.outcome import Completed, Failed
from noonday.domain.target import FetchTarget, HttpTarget, ServiceTarget
from noonday.http_client import AddrInfo
from noonday.targets import NetworkPolicy, Targets
from noonday.targets.calls import Caller
from noonday.targets.resolver import VettingResolver, guarded_socket
from tests.targets.hands import WebServer, a_config, a_run

OPEN = NetworkPolicy()

FORMS = ["127.0.0.1", "127.1", "0x7f000001", "017700000001", "2130706433", "127.0.0.1.", "localhost"]


async def _fetch(url: str, policy: NetworkPolicy) -> Any:
    targets = Targets(a_config(networks=policy))
    try:
        return await targets.run(a_run(FetchTarget(url=url)))
    finally:
        await targets.close()


@pytest.mark.parametrize("form", FORMS)
async def test_each_form_reaches_loopback_in_open_mode_and_never_in_strict(
    form: str, server: WebServer
) -> None:
    url = f"http://{form}:{server.port}/"
    refused = await _fetch(url, NetworkPolicy(mode="strict", allow=("192.0.2.0/24", "api.example.com")))
    assert isinstance(refused, Failed)
    assert not refused.retryable
    assert "allow list" in refused.error
    assert server.seen == []
    assert isinstance(await _fetch(url, OPEN), Completed)
    assert len(server.seen) == 1


async def test_a_redirect_to_another_place_is_not_followed(server: WebServer) -> None:
    async with WebServer() as other:
        server.answers(status=302, headers={"Location": f"{other.url}/secret?token=abc"})
        outcome = await _fetch(server.url, OPEN)
        assert isinstance(outcome, Failed)
        assert not outcome.retryable
        assert "redirect" in outcome.error
        assert f"{other.url}/secret" in outcome.error
        assert "token" not in outcome.error
        assert other.seen == []


def answering(*addresses: str) -> Callable[[str, int], Sequence[AddrInfo]]:
    """A name server that gives another address each time it is asked, the last one for ever."""
    left = list(addresses)

    def lookup(host: str, port: int) -> Sequence[AddrInfo]:
        found = (left.pop(0) if len(left) > 1 else left[0]).split()
        kinds = [socket.AF_INET6 if ":" in a else socket.AF_INET for a in found]
        return [(k, socket.SOCK_STREAM, 6, "", (a, port)) for k, a in zip(kinds, found, strict=True)]

    return lookup


async def _fetch_by(
    lookup: Callable[[str, int], Sequence[AddrInfo]], port: int, policy: NetworkPolicy
) -> Any:
    resolver = VettingResolver(policy, timedelta(seconds=5), lookup)
    config = a_config(networks=policy)
    targets = Targets(config, Caller(config, resolver))
    try:
        return await targets.run(a_run(FetchTarget(url=f"http://rebinding.example:{port}/")))
    finally:
        await targets.close()


async def test_the_connection_goes_to_the_address_that_was_checked(server: WebServer) -> None:
    asked: list[str] = []
    lying = answering("127.0.0.1", "169.254.169.254")

    def lookup(host: str, port: int) -> Sequence[AddrInfo]:
        asked.append(host)
        return lying(host, port)

    assert isinstance(await _fetch_by(lookup, server.port, OPEN), Completed)
    assert asked == ["rebinding.example"]  # a second question could have been answered differently
    assert server.seen[0].headers["host"] == f"rebinding.example:{server.port}"


@pytest.mark.parametrize(
    "addresses",
    [
        "169.254.169.254",
        "127.0.0.1 169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1%lo 127.0.0.1",
        "0.0.0.0",
    ],
)
async def test_a_name_is_refused_if_one_of_its_addresses_is(addresses: str, server: WebServer) -> None:
    outcome = await _fetch_by(answering(addresses), server.port, OPEN)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.error.startswith("not called: ")
    assert server.seen == []


async def test_in_strict_mode_a_listed_name_may_be_private_but_never_metadata(server: WebServer) -> None:
    policy = NetworkPolicy(mode="strict", allow=("rebinding.example",))
    assert isinstance(await _fetch_by(answering("127.0.0.1"), server.port, policy), Completed)
    assert isinstance(await _fetch_by(answering("169.254.169.254"), server.port, policy), Failed)
    unlisted = NetworkPolicy(mode="strict", allow=("192.0.2.0/24",))
    assert isinstance(await _fetch_by(answering("127.0.0.1"), server.port, unlisted), Failed)
    assert len(server.seen) == 1


async def test_a_name_without_an_address_is_worth_a_retry() -> None:
    def lookup(host: str, port: int) -> Sequence[AddrInfo]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    outcome = await _fetch_by(lookup, 80, OPEN)
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "Name or service not known" in outcome.error


def test_the_last_gate_looks_at_the_address_itself() -> None:
    make = guarded_socket(OPEN)
    for address in ("169.254.169.254", "::ffff:169.254.169.254", "fe80::1%lo", "0.0.0.0", "nonsense"):
        with pytest.raises(PermissionError):
            make((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)))
    make((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))).close()


@pytest.mark.parametrize(
    "endpoint",
    [
        "//evil.example/x",
        "@evil.example/x",
        ".evil.example/",
        "evil",
        "",
        "/\\evil",
        "/a/../../admin",
        "/%2e%2E/x",
        "/./x",
        "/a b",
        "/a\r\nHost: evil",
        "/a#b",
        ":81/x",
        "/..",
        "\\\\evil",
    ],
)
async def test_an_endpoint_cannot_leave_its_service(endpoint: str, server: WebServer) -> None:
    targets = Targets(a_config(services={"email-service": f"{server.url}/jobs"}))
    outcome = await targets.run(a_run(ServiceTarget(service="email-service", endpoint=endpoint)))
    await targets.close()
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert server.seen == []


async def test_a_cancel_url_on_another_host_is_not_taken(server: WebServer) -> None:
    targets = Targets(a_config(public_url="http://scheduler.example"))
    for url in ("http://localhost/x", "http://evil.example/", "//evil.example/", "file:///x", "http://[::1"):
        server.answers(status=202, json={"cancel_url": url})
        outcome = await targets.run(a_run(HttpTarget(url=server.url)))
        assert getattr(outcome, "cancel_url", "missing") is None
    await targets.close()
