"""What can go wrong when somebody asks for something; a failing run is an Outcome, not an error.

NoondayError
├── NotFound       the thing asked for does not exist
├── Invalid        a value is wrong; names the field and the value
├── Conflict       the request does not fit the present state
│   ├── MoveRefused    a job may not go from one state to the other
│   └── LockLost       a lock ran out, or was taken, while its holder was at work
├── NotAllowed     the caller may not do this
├── Unidentified   nobody knows who asks: no key or token, or one that is not good
├── NotLeader      a planning transaction of a term that is over; nothing was written
└── Unavailable    something needed is down or switched off; asking again later may help
    └── RoadDown       Redis cannot be used now; the database road goes on
"""

from __future__ import annotations

from dataclasses import dataclass


class NoondayError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class NotFound(NoondayError):
    """The thing asked for does not exist."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong value: the field as the caller wrote it, and why it is wrong."""

    field: str
    message: str


class Invalid(NoondayError):
    """A value is wrong."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))


def invalid(field: str, value: object, why: str) -> Invalid:
    """The usual single problem, with the value quoted and cut to a readable length."""
    text = repr(value)
    if len(text) > 120:
        text = text[:117] + "..."
    return Invalid(Problem(field, f"{text} {why}"))


class Conflict(NoondayError):
    """The request does not fit the present state."""


class MoveRefused(Conflict):
    """A job may not go from one state to the other."""

    def __init__(self, current: str, wanted: str, hint: str = "") -> None:
        self.current, self.wanted = current, wanted
        text = f"a job that is {current} cannot become {wanted}"
        super().__init__(f"{text}; {hint}" if hint else text)


class LockLost(Conflict):
    """The lock is not held any more."""


class NotAllowed(NoondayError):
    """The caller may not do this."""


class Unidentified(NoondayError):
    """Say who you are: send an API key or a token as Authorization: Bearer …"""


class Unavailable(NoondayError):
    """Something needed is down or switched off."""


class RoadDown(Unavailable):
    """Redis cannot be used now."""


class NotLeader(NoondayError):
    """Another instance was elected: this term is over."""
