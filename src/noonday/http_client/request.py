"""The bytes in which a call begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from yarl import URL

# What may be done twice as well as once (RFC 9110, 9.2.2).
REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Outline(NamedTuple):
    """The head of calls that differ in some headers: what is the same in all of them."""

    before: bytes
    after: bytes

    def filled(self, lines: str, body: bytes) -> bytes:
        """The whole call. The lines are the headers that differ, and their values hold no line ends: whoever
        made them has seen to that."""
        return b"".join((self.before, lines.encode(), self.after, body))


def outline(method: str, url: URL, headers: Mapping[str, str], length: int) -> Outline:
    """Raises ValueError for a line end where none may be."""
    first = f"{method} {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    ends = len(headers)
    if fields.count("\n") != ends or fields.count("\r") != ends or "\0" in fields:
        raise ValueError("a header contains a line end or another control character")
    size = f"Content-Length: {length}\r\n\r\n" if length or method not in _WITHOUT_BODY else "\r\n"
    return Outline(first.encode(), (fields + size).encode())


def head_of(method: str, url: URL, headers: Mapping[str, str], length: int) -> bytes:
    """The request line and the headers. Raises ValueError for a line end where none may be."""
    return b"".join(outline(method, url, headers, length))
