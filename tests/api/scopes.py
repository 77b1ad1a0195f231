"""Requests as a server hands them to the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote


def scope_of(method: str, target: str, headers: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    """`target` is ASCII, as in the first line of a request."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 8060),
    }
