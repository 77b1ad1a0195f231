"""Where a call may go: the corpus of ways around the rules."""

from __future__ import annotations

import pytest

from noonday.domain.errors import Invalid
from noonday.targets import NetworkPolicy, check_url
from noonday.targets.network import Refused, vet
from tests.targets.url_corpus import INSIDE, MALFORMED, METADATA

OPEN = NetworkPolicy()
STRICT = NetworkPolicy(mode="strict", allow=("api.example.com", "*.partner.example", "10.1.0.0/16"))


@pytest.mark.parametrize("url", METADATA + MALFORMED)
def test_no_spelling_reaches_metadata_or_slips_past_the_parser(url: str) -> None:
    policies = [OPEN, STRICT, NetworkPolicy(mode="strict", allow=("0.0.0.0/1",))]
    for policy in policies[: 2 if url in METADATA else 3]:
        with pytest.raises(Refused):
            vet(url, policy)
    with pytest.raises(Invalid) as caught:
        check_url(url, OPEN, "target.url")
    assert caught.value.problems[0].field == "target.url"


@pytest.mark.parametrize("url", [url for url in INSIDE if url not in ("http://localhost/",)])
def test_strict_mode_refuses_all_that_is_not_listed(url: str) -> None:
    with pytest.raises(Refused):
        vet(url, NetworkPolicy(mode="strict", allow=("api.example.com", "*.partner.example", "10.1.2.3")[:2]))
    if "8.8.8.8" in url or url.startswith("http://["):
        with pytest.raises(Refused):
            vet(url, STRICT)


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(METADATA)) >= 60
    assert len(set(METADATA + MALFORMED + INSIDE)) >= 130


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/",
        "https://API.example.com./x",
        "https://a.partner.example/",
        "https://a.b.partner.example:8443/",
        "http://10.1.2.3/",
        "http://[::ffff:10.1.2.3]/",
    ],
)
def test_strict_mode_lets_the_listed_pass(url: str) -> None:
    vet(url, STRICT)


@pytest.mark.parametrize("url", [url for url in INSIDE if "64:ff9b" not in url and "[::127" not in url])
def test_open_mode_lets_loopback_private_and_public_pass(url: str) -> None:
    vet(url, OPEN)


def test_it_spells_an_address_the_way_it_will_be_connected() -> None:
    assert vet("http://0x7f.1:8080/a?b=c", OPEN).raw_authority == "127.0.0.1:8080"
    assert vet("http://[0:0:0:0:0:0:0:1]:81/", OPEN).raw_authority == "[::1]:81"


def test_deny_beats_allow_and_allow_beats_the_built_in_refusals() -> None:
    url = "http://169.254.169.254/"
    vet(url, NetworkPolicy(allow=("169.254.169.254",)))
    with pytest.raises(Refused, match="deny list"):
        vet(url, NetworkPolicy(allow=("169.254.169.254",), deny=("169.254.0.0/16",)))
    with pytest.raises(Refused, match="deny list"):
        vet("http://x.bad.example/", NetworkPolicy(allow=("x.bad.example",), deny=("*.bad.example",)))
    with pytest.raises(Refused, match="deny list"):
        vet("http://[2002:7f00:1::]/", NetworkPolicy(deny=("127.0.0.0/8",)))


def test_ports_are_checked_where_some_are_named() -> None:
    policy = NetworkPolicy(ports=frozenset({443}))
    vet("https://example.com/", policy)
    for url in ("http://example.com/", "https://example.com:22/"):
        with pytest.raises(Refused, match="port"):
            vet(url, policy)


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "http://example.com", "a b", "", "user@host", "127.1"])
def test_a_policy_with_a_wrong_entry_is_refused(entry: str) -> None:
    with pytest.raises(Invalid, match=r"networks\.allow"):
        NetworkPolicy(allow=(entry,))
