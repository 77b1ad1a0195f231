"""Choosing one of several words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from noonday.domain.errors import invalid

__all__ = ["one_of"]


def one_of(flag: str, given: str, words: Sequence[str]) -> str:
    word = given.strip().lower()
    if word in words:
        return word
    near = get_close_matches(word, words, n=1)
    raise invalid(
        flag,
        given,
        f"is unknown; did you mean {near[0]}?" if near else f"must be {', '.join(words[:-1])} or {words[-1]}",
    )
