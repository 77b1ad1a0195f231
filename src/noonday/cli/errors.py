"""One table from what went wrong to an exit code, and one clear line about it."""

from __future__ import annotations

from noonday.cli.output import say
from noonday.domain.errors import Conflict, Invalid, NoondayError, NotAllowed, NotFound, Unavailable

__all__ = ["EXIT_CODES", "FAULT", "INTERRUPTED", "USAGE", "Hint", "exit_code", "report"]

USAGE = 2
FAULT = 70  # a defect of Noonday itself
INTERRUPTED = 130

EXIT_CODES: dict[type[NoondayError], int] = {
    Invalid: USAGE,
    NotFound: 3,
    Conflict: 4,
    NotAllowed: 5,
    Unavailable: 6,
}


class Hint(NoondayError):
    """An error with advice on what to type instead; its cause decides the exit code."""

    def __init__(self, cause: NoondayError, advice: str) -> None:
        self.cause, self.advice = cause, advice
        super().__init__(str(cause))


def exit_code(error: NoondayError) -> int:
    if isinstance(error, Hint):
        return exit_code(error.cause)
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAULT)


def report(error: NoondayError) -> int:
    """Say what is wrong on stderr, one line per problem, and return the exit code."""
    cause = error.cause if isinstance(error, Hint) else error
    if isinstance(cause, Invalid):
        say(*(f"noonday: {problem.field}: {problem.message}" for problem in cause.problems))
    else:
        say(f"noonday: {cause}")
    if isinstance(error, Hint):
        say(f"hint: {error.advice}")
    return exit_code(error)
