"""Addresses in all their spellings, and those that no job may reach unless somebody allows it by name."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "an unspecified address"),
        ("::/128", "an unspecified address"),
        ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("100.100.100.200/32", "a cloud metadata address"),
        ("168.63.129.16/32", "a cloud metadata address"),
        ("192.0.0.192/32", "a cloud metadata address"),
        ("fd00:ec2::/32", "a cloud metadata address"),
        ("fd20:ce::/32", "a cloud metadata address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("240.0.0.0/4", "a reserved or broadcast address"),
    )
)

REFUSED_NAMES = frozenset(
    {
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.azure.com",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.oraclecloud.com",
        "metadata.packet.net",
        "metadata.platformequinix.com",
        "metadata.tencentyun.com",
        "rancher-metadata",
    }
)

_COMPATIBLE = ip_network("::/96")
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_ISATAP = (0x00005EFE, 0x02005EFE)


def read_address(host: str) -> Address | None:
    """What a host text means to the C library (127.1, 0x7f000001, 017700000001…), or None for a name."""
    bare = host.rstrip(".")
    try:
        return ip_address(bare)
    except ValueError:
        pass
    if not bare.isascii() or any(c.isspace() for c in bare):
        return None
    try:
        return IPv4Address(socket.inet_aton(bare))
    except OSError:
        return None


def meanings(address: Address) -> Iterator[Address]:
    """The address and every IPv4 address hidden in it: mapped, compatible, NAT64, 6to4, Teredo, ISATAP."""
    yield address
    if isinstance(address, IPv4Address):
        return
    low = IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    embeds = address in _COMPATIBLE or any(address in network for network in _NAT64)
    if (embeds and int(address) > 1) or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        yield low


def why_refused(address: Address) -> str | None:
    for meaning in meanings(address):
        for network, why in REFUSED:
            if meaning.version == network.version and meaning in network:
                return why
    return None
