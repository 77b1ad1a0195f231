"""Searches as text, changed by clicks: a value added to a field or taken away, all else as written."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["chosen", "replaced", "toggled", "without_each"]

_WORD: Final = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+')
_VALUE: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_PLAIN: Final = re.compile(r"[\w.@/+-]+")


def toggled(q: str, field: str, value: str) -> str:
    """The search with the value chosen, or not any more if it was."""
    words = _WORD.findall(q)
    values = _values(words, field)
    written = _written(value)
    same = [one for one in values if _read(one) == value]
    values = [one for one in values if one not in same] if same else [*values, written]
    kept = [word for word in words if not _names(word, field)]
    return " ".join([*kept, f"{field}:{','.join(values)}"] if values else kept)


def replaced(q: str, field: str, written: str | None) -> str:
    """The search with this one condition on the field, as it is written in a search, or with none."""
    kept = [word for word in _WORD.findall(q) if not _names(word, field)]
    return " ".join(kept if written is None else [*kept, f"{field}:{written}"])


def chosen(q: str, field: str) -> set[str]:
    return {_read(one) for one in _values(_WORD.findall(q), field)}


def _values(words: list[str], field: str) -> list[str]:
    found = [word.partition(":")[2] for word in words if _names(word, field)]
    return [value for one in found for value in _VALUE.findall(one)]


def _names(word: str, field: str) -> bool:
    return word.partition(":")[0].lower() == field and ":" in word


def _written(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() != "none":
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(written: str) -> str:
    if written.startswith('"') and written.endswith('"') and len(written) > 1:
        return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
    return written


def without_each(q: str) -> list[tuple[str, str]]:
    """Each word of the search, and the search without it."""
    words = _WORD.findall(q)
    return [(word, " ".join(words[:place] + words[place + 1 :])) for place, word in enumerate(words)]
