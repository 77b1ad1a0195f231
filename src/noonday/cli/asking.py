"""Asking before something is lost; where nobody can be asked, `--yes` must say it."""

from __future__ import annotations

import sys

from noonday.cli.output import clean, say
from noonday.domain.errors import Invalid, Problem

__all__ = ["confirmed"]


def confirmed(question: str, *, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Invalid(Problem("--yes", f"is needed where nobody can be asked: {question}"))
    print(f"{clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say("nothing was done")
    return False
