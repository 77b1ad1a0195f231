"""A typed client for the whole API, sync and async; it needs `noonday[client]` and nothing of the server."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("httpx2") is None:
    raise ImportError("the client needs httpx2: pip install 'noonday[client]'")

from noonday.client.client import AsyncNoondayClient, NoondayClient
from noonday.client.errors import (
    ClientError,
    Conflict,
    Gone,
    Invalid,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Outdated,
    Refused,
    TooMany,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
)
from noonday.client.listening import Event
from noonday.client.retrying import NO_RETRIES, Retries

__all__ = [
    "NO_RETRIES",
    "AsyncNoondayClient",
    "ClientError",
    "Conflict",
    "Event",
    "Gone",
    "Invalid",
    "NoondayClient",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "Outdated",
    "Refused",
    "Retries",
    "TooMany",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
]
