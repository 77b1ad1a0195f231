"""Where a job's calls may go: every URL is vetted when it is saved and again when it runs, and the connection
is made to an address that was checked, whatever the name resolves to a moment later.

open     all but link-local, metadata, multicast and unspecified addresses; loopback and private ones too
strict   nothing but what `allow` names

`allow` and `deny` hold networks (`10.0.0.0/8`, `::1`), host names (`api.example.com`) and their sub-domains
(`*.example.com`). `deny` beats `allow`, and `allow` beats the refusals that are built in. A name that is
allowed in strict mode may resolve to any address that open mode allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network
from typing import Literal

from yarl import URL

from noonday.domain.errors import invalid
from noonday.targets.addresses import (
    REFUSED_NAMES,
    Address,
    Network,
    meanings,
    read_address,
    why_refused,
)

_MAX_URL = 8_192
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


class Refused(Exception):
    """The call may not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    mode: Literal["open", "strict"] = "open"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset()  # none = any port

    def __post_init__(self) -> None:
        if self.mode not in ("open", "strict"):
            raise invalid("networks.mode", self.mode, "is neither open nor strict")
        _rules(self.allow, "networks.allow")
        _rules(self.deny, "networks.deny")


@dataclass(frozen=True, slots=True)
class _Rules:
    networks: tuple[Network, ...]
    hosts: tuple[str, ...]

    def names(self, address: Address) -> bool:
        """The address itself; ::ffff:a.b.c.d is only another spelling of a.b.c.d."""
        same = getattr(address, "ipv4_mapped", None) or address
        return any(a.version == n.version and a in n for a in {address, same} for n in self.networks)

    def touches(self, address: Address) -> bool:
        """The address or one that is hidden in it."""
        return any(m.version == n.version and m in n for m in meanings(address) for n in self.networks)

    def has_host(self, host: str) -> bool:
        return any(host.endswith(n[1:]) if n.startswith("*.") else host == n for n in self.hosts)


@lru_cache(maxsize=64)
def _rules(entries: tuple[str, ...], field: str) -> _Rules:
    networks: list[Network] = []
    names: list[str] = []
    for entry in entries:
        try:
            networks.append(ip_network(entry))
        except ValueError as exc:
            if not entry or any(c in entry for c in "/:@ ") or read_address(entry):
                raise invalid(field, entry, "is neither a network nor a host name") from exc
            names.append(plain_name(entry))
    return _Rules(tuple(networks), tuple(names))


def plain_name(host: str) -> str:
    return host.rstrip(".").lower()


def vet(text: str, policy: NetworkPolicy) -> URL:
    """The URL to call, an address in it spelled canonically; raises Refused. Asks no name server."""
    url = _parse(text)
    port = url.port or 0
    if port == 0 or (policy.ports and port not in policy.ports):
        raise Refused(f"port {port} is not allowed")
    host = url.raw_host or ""
    spelled = _vetted_host(host, policy)
    return url if spelled == host else url.with_host(spelled)


@lru_cache(maxsize=1024)
def _vetted_host(host: str, policy: NetworkPolicy) -> str:
    """The host alone decides, and the policy, so what was allowed is remembered."""
    address = read_address(host)
    if address is None:
        check_name(plain_name(host), policy)
        return host
    check_address(address, "", policy)
    return str(address)


@lru_cache(maxsize=4096)
def domain_of(text: str) -> str | None:
    """The host, with its port where that is not the scheme's own; None for what can never be called."""
    try:
        url = _parse(text)
        port = url.explicit_port
    except (Refused, ValueError):
        return None
    host = url.raw_host or ""
    address = read_address(host)
    name = plain_name(host) if address is None else url.with_host(str(address)).host_subcomponent or ""
    return name if port is None or url.is_default_port() else f"{name}:{port}"


def check_url(text: str, policy: NetworkPolicy, field: str = "url") -> None:
    """For a job that is being saved: raises Invalid with the field; names are resolved only when it runs."""
    try:
        vet(text, policy)
    except Refused as exc:
        raise invalid(field, text, f"is refused: {exc}") from exc


def _parse(text: str) -> URL:
    if len(text) > _MAX_URL:
        raise Refused(f"the URL is longer than {_MAX_URL} characters")
    # urllib and yarl drop tabs and line ends silently, so that two parsers would see two hosts
    if _UNSAFE.search(text):
        raise Refused("the URL contains a space, a control character or a backslash")
    try:
        url = URL(text)
    except ValueError as exc:
        raise Refused(f"the URL cannot be read: {exc}") from exc
    if url.scheme not in ("http", "https"):
        raise Refused("only http:// and https:// are called")
    # the text itself is asked: yarl drops an empty user silently
    if "@" in text and "@" in re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]:
        raise Refused("a user or password in the URL is not allowed; give an Authorization header")
    host = url.raw_host
    if not host or not host.strip("."):
        raise Refused("the URL has no host")
    if "%" in host or not host.isascii() or ".." in host:
        raise Refused("the host name is not valid")
    return url


def check_name(host: str, policy: NetworkPolicy) -> None:
    allow = _rules(policy.allow, "networks.allow")
    if _rules(policy.deny, "networks.deny").has_host(host):
        raise Refused(f"{host} is on the deny list")
    if allow.has_host(host):
        return
    if host in REFUSED_NAMES:
        raise Refused(f"{host} names a cloud metadata service")
    if policy.mode == "strict" and not allow.networks:
        raise Refused(f"{host} is not on the allow list")


def check_address(address: Address, host: str, policy: NetworkPolicy) -> None:
    """`host` is the name that led to the address, empty where the URL holds the address itself."""
    check_peer(address, policy)
    allow = _rules(policy.allow, "networks.allow")
    if policy.mode == "strict" and not allow.names(address) and not (host and allow.has_host(host)):
        raise Refused(f"{host or address} is not on the allow list")


@lru_cache(maxsize=1024)
def check_peer(address: Address, policy: NetworkPolicy) -> None:
    """What can be said of an address alone, when the name that led to it has already been allowed."""
    if _rules(policy.deny, "networks.deny").touches(address):
        raise Refused(f"{address} is on the deny list")
    why = why_refused(address)
    if why and not _rules(policy.allow, "networks.allow").names(address):
        raise Refused(f"{address} is {why}")
