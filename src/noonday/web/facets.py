"""Values of a field to choose from: how many there are of each, and the search that a click makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from noonday.web import searches

__all__ = ["Choice", "choices", "one_of"]

_MOST: Final = 15  # the most frequent values, where there is no end of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    value: str
    word: str
    count: int | None  # None where nobody counted
    chosen: bool
    address: str


def choices(
    q: str,
    field: str,
    counts: Mapping[str, int],
    address: Callable[[str], str],
    *,
    order: Sequence[str] = (),
    words: Mapping[str, str] | None = None,
    least: bool = False,
) -> list[Choice]:
    """Each value that occurs or is chosen. A value may have a word for people, which a search knows too.

    With `least` not everything was counted: of the values that are known, any may occur.
    """
    known = dict(words or {})
    written = searches.chosen(q, field)
    picked = {_value_of(one, known) for one in written}
    made = []
    for value in order if order and least else _shown(counts, picked, order):
        word = known.get(value, value)
        term = value if value in written else word
        made.append(
            Choice(
                value=value,
                word=word,
                count=counts.get(value, None if least else 0),
                chosen=value in picked,
                address=address(searches.toggled(q, field, term)),
            )
        )
    return made


def one_of(
    q: str, field: str, counts: Mapping[str, int], address: Callable[[str], str], words: Mapping[str, str]
) -> list[Choice]:
    """Values such as `<1h` of which one at a time makes sense; `words` has them all."""
    written = searches.chosen(q, field)
    return [
        Choice(
            value=value,
            word=word,
            count=counts.get(value),
            chosen=written == {value},
            address=address(searches.replaced(q, field, None if written == {value} else value)),
        )
        for value, word in words.items()
    ]


def _value_of(written: str, words: Mapping[str, str]) -> str:
    return next((value for value, word in words.items() if word == written.lower()), written)


def _shown(counts: Mapping[str, int], picked: Iterable[str], order: Sequence[str]) -> list[str]:
    if order:
        return [value for value in order if value in counts or value in picked]
    first = sorted(counts, key=lambda value: (-counts[value], value))[:_MOST]
    return [*first, *sorted(set(picked) - set(first))]
