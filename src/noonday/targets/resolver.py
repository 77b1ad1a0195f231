"""Connects a vetted URL to a vetted address: the client gets no other, whatever the name servers say."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from noonday.http_client import AddrInfo
from noonday.targets.addresses import Address, read_address
from noonday.targets.network import (
    NetworkPolicy,
    Refused,
    check_address,
    check_name,
    check_peer,
    plain_name,
)

Lookup = Callable[[str, int], Sequence[AddrInfo]]


def _system_lookup(host: str, port: int) -> Sequence[AddrInfo]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


def numeric(sockaddr: tuple[Any, ...]) -> Address:
    """Without the zone of a scoped IPv6 address; raises Refused."""
    address = read_address(str(sockaddr[0]).partition("%")[0])
    if address is None:
        raise Refused(f"{sockaddr[0]!r} is no address")
    return address


class VettingResolver:
    """Gives the client only addresses that the policy allows; one refused address refuses the name.

    Lookups have threads of their own: a name server that hangs must not stop the rest of the process.
    """

    def __init__(self, policy: NetworkPolicy, patience: timedelta, lookup: Lookup = _system_lookup) -> None:
        self._policy = policy
        self._patience = patience.total_seconds()
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="noonday-dns")

    async def resolve(self, host: str, port: int) -> list[AddrInfo]:
        """Raises Refused, or OSError. An address in the URL itself was vetted with it."""
        if (address := read_address(host)) is not None:
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port))]
        name = plain_name(host)
        check_name(name, self._policy)
        found = [
            (kind, form, proto, "", (str(self._checked(sockaddr, name)), port))
            for kind, form, proto, _, sockaddr in await self._look_up(host, port)
        ]
        if not found:
            raise OSError(errno.EHOSTUNREACH, f"{name} has no address")
        return found

    def _checked(self, sockaddr: tuple[Any, ...], name: str) -> Address:
        address = numeric(sockaddr)
        check_address(address, name, self._policy)
        return address

    async def _look_up(self, host: str, port: int) -> Sequence[AddrInfo]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._patience):
                return await loop.run_in_executor(self._threads, self._lookup, host, port)
        except TimeoutError as exc:
            words = f"the name server gave no answer within {self._patience:g} s"
            raise OSError(errno.ETIMEDOUT, words) from exc

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def guarded_socket(policy: NetworkPolicy) -> Callable[[AddrInfo], socket.socket]:
    """The last gate: looks at the very address that is about to be connected, however it got there."""

    def make(info: AddrInfo) -> socket.socket:
        family, kind, proto, _, sockaddr = info
        try:
            check_peer(numeric(sockaddr), policy)
        except Refused as exc:
            raise PermissionError(errno.EACCES, str(exc)) from exc
        return socket.socket(family, kind, proto)

    return make
