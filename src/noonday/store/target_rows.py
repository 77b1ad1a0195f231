"""The columns that say what a job runs. The URL has a column of its own, and that column is the truth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from noonday.domain.target import (
    CommandTarget,
    FetchTarget,
    HttpTarget,
    PythonTarget,
    ServiceTarget,
    Target,
)
from noonday.store.reading import Row, RowError, an_object

_KINDS: dict[str, type[Target]] = {
    "http": HttpTarget,
    "service": ServiceTarget,
    "fetch": FetchTarget,
    "python": PythonTarget,
    "command": CommandTarget,
}
_KNOWN = {kind: frozenset(field.name for field in fields(kind)) for kind in _KINDS.values()}
_WRITTEN = {
    kind: tuple(field.name for field in fields(kind) if field.name != "url") for kind in _KINDS.values()
}
_TUPLES = ("args", "argv", "expected_status")


def target_values(target: Target) -> dict[str, Any]:
    """A plain fetch is its URL alone, as people insert it by hand."""
    made: dict[str, Any] = {}
    for name in _WRITTEN[type(target)]:
        value = getattr(target, name)
        made[name] = list(value) if isinstance(value, tuple) else value
    plain_fetch = isinstance(target, FetchTarget) and not target.headers
    return {"url": getattr(target, "url", None), "target": None if plain_fetch else made}


def read_target(row: Row) -> Target:
    made, url = an_object(row, "target"), row["url"]
    if not made:
        if not url:
            raise RowError("target: the row has neither a target nor a url")
        return FetchTarget(url=url)
    kind = _KINDS.get(str(made.get("type")))
    if kind is None:
        raise RowError(f"target: unknown type {made.get('type')!r}")
    known = _KNOWN[kind]
    given = {name: value for name, value in made.items() if name in known and name != "type"}
    if url and "url" in known:
        given["url"] = url
    for name in _TUPLES:
        if name in given:
            given[name] = tuple(given[name])
    return kind(**given)
