"""Pages on the wire: by `limit` and `offset`, or by a cursor that goes on where the last page ended."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from noonday.domain.access import Caller
from noonday.domain.errors import Invalid, Problem
from noonday.store.pages import Mark, Page

__all__ = ["Counting", "Limit", "Paging", "cursor_of", "mark_of", "own_service", "paged"]

_LONGEST: Final = 4096


Limit = Annotated[int, Field(ge=1, le=200)]


class Counting(BaseModel):
    """The part of a list's query that says which page, counted from the first."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class Paging(Counting):
    """Likewise, or from where the page before ended."""

    cursor: (
        Annotated[str, Field(max_length=_LONGEST, description="`next_cursor` of the page before")] | None
    ) = None

    def mark(self) -> Mark | None:
        if self.cursor is None:
            return None
        if self.offset:
            raise Invalid(Problem("offset", "does not go together with a cursor"))
        return mark_of(self.cursor)


def cursor_of(mark: Mark | None) -> str | None:
    if mark is None:
        return None
    plain = json.dumps([mark.order, mark.key, mark.id], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def mark_of(cursor: str) -> Mark:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found = json.loads(base64.b64decode(padded, b"-_", validate=True))
        order, key, row = found
        if not isinstance(found, list) or not (_text(order) and _text(row) and (key is None or _text(key))):
            raise ValueError
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise Invalid(Problem("cursor", "is not one that this list gave")) from None
    return Mark(order=order, key=key, id=row)


def _text(value: object) -> bool:
    """Something that a database takes as text: no NUL, and no half of a character, which is a ValueError."""
    return isinstance(value, str) and b"\x00" not in value.encode()


def paged(
    request: Request,
    name: str,
    shown: list[dict[str, Any]],
    page: Page[Any],
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    """The answer of a list; `Link` (RFC 8288) leads to the next page with the same filters."""
    cursor = cursor_of(page.next)
    body = {
        name: shown,
        **(more or {}),
        **page.bounds,
        "next_cursor": cursor,
    }
    return JSONResponse(body, headers=_link(request, cursor) if cursor else {})


def _link(request: Request, cursor: str) -> dict[str, str]:
    kept = [pair for pair in request.query_params.multi_items() if pair[0] not in ("cursor", "offset")]
    address = f"{request.url.path}?{urlencode([*kept, ('cursor', cursor)])}"
    return {"Link": f'<{address}>; rel="next"'}


def own_service(who: Caller) -> str | None:
    """Whose jobs a list may show: those of one service to its own callers, all to everybody else."""
    return (who.service or "") if who.confined else None
