"""What a change has changed, field by field, as people compare it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from noonday.store.audit import AuditEntry

__all__ = ["Change", "changes", "changes_of"]

_LONGEST: Final = 2000
_MOST: Final = 200  # fields of one change
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Change:
    """None: the field was not there."""

    field: str
    before: str | None
    after: str | None


def changes_of(entry: AuditEntry) -> list[Change]:
    return changes(entry.before, entry.after)


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Change]:
    """The leaves that differ; `revision` moves with every change and says nothing."""
    found = []
    for change in _walked("", dict(before or {}), dict(after or {})):
        if change.field != "revision":
            found.append(change)
        if len(found) == _MOST:
            break
    return found


def _walked(at: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            place = f"{at}.{name}" if at else name
            yield from _walked(place, before.get(name, _NOTHING), after.get(name, _NOTHING))
    elif before != after:
        yield Change(at, _told(before), _told(after))


def _told(value: Any) -> str | None:
    if value is _NOTHING or value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
