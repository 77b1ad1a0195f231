"""What a call can end with beside its answer.

ClientError
├── Refused            the server said no: status, detail, errors, request_id
│   ├── NotSignedIn        401
│   ├── NotAllowed         403
│   ├── NotFound           404
│   ├── Conflict           409
│   ├── Gone               410
│   ├── Outdated           412
│   ├── Invalid            400, 413, 415, 422
│   ├── TooMany            429
│   └── Unavailable        5xx
├── Unreachable        no answer came: refused, cut off, timed out
└── UnexpectedAnswer   an answer that this client cannot read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ClientError",
    "Conflict",
    "Gone",
    "Invalid",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "Outdated",
    "Refused",
    "TooMany",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "refusal",
]


class ClientError(Exception):
    """A call brought no answer."""


class Refused(ClientError):
    """The server said no. `problem` is its answer in full (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.retry_after = retry_after  # seconds
        super().__init__(f"{status} {self.title}: {self.detail}")

    @property
    def type(self) -> str:
        return str(self.problem.get("type", "about:blank"))

    @property
    def title(self) -> str:
        return str(self.problem.get("title", "Refused"))

    @property
    def detail(self) -> str:
        return str(self.problem.get("detail") or self.problem.get("error") or "no reason was given")

    @property
    def errors(self) -> tuple[Mapping[str, Any], ...]:
        """One for each wrong value: field, pointer, detail, value."""
        return tuple(self.problem.get("errors") or ())

    @property
    def request_id(self) -> str | None:
        """What to look for in the server's log."""
        found = self.problem.get("request_id")
        return None if found is None else str(found)


class NotSignedIn(Refused):
    """No valid key or token was sent."""


class NotAllowed(Refused):
    """The caller may not do this."""


class NotFound(Refused):
    """There is no such thing."""


class Conflict(Refused):
    """It does not fit the present state."""


class Gone(Refused):
    """The attempt that this belongs to is over."""


class Outdated(Refused):
    """It was changed since it was read."""


class Invalid(Refused):
    """A value is wrong; `errors` names each."""


class TooMany(Refused):
    """Too many in a short time."""


class Unavailable(Refused):
    """Something that the server needs is down or switched off."""


class Unreachable(ClientError):
    """No answer came."""


class UnexpectedAnswer(ClientError):
    """The answer is none that this client can read: another server, or one of another version?"""


_KINDS: Mapping[int, type[Refused]] = {
    400: Invalid,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: Outdated,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooMany,
}


def refusal(status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> Refused:
    kind = _KINDS.get(status, Unavailable if status >= 500 else Refused)
    return kind(status, problem, retry_after)
