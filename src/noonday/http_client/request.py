"""The bytes in which a call begins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from yarl import URL

# What may be done twice as well as once (RFC 9110, 9.2.2).
REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def head_of(method: str, url: URL, headers: Mapping[str, str], length: int) -> bytes:
    """The request line and the headers. Raises ValueError for a line end where none may be."""
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    ends = len(headers)
    if fields.count("\n") != ends or fields.count("\r") != ends or "\0" in fields:
        raise ValueError("a header contains a line end or another control character")
    size = f"Content-Length: {length}\r\n\r\n" if length or method not in _WITHOUT_BODY else "\r\n"
    return (_first_lines(method, url) + fields + size).encode()


@lru_cache(maxsize=4096)
def _first_lines(method: str, url: URL) -> str:
    host = url.host_port_subcomponent
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\nHost: {host}\r\n"
