"""What a form of a page brings: its fields as text, without a library for it."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from noonday.api.door.form_tokens import FORM_FIELD
from noonday.domain.errors import Invalid, Problem

__all__ = ["Fields", "Sent"]

_MOST: Final = 2000  # fields


class Fields(dict[str, list[str]]):
    """Every field with all its values, in the order of the page."""

    def text(self, name: str) -> str:
        """The last value without the space around it; nothing where the field is missing."""
        values = self.get(name)
        return values[-1].strip() if values else ""

    def texts(self, name: str) -> list[str]:
        return [value.strip() for value in self.get(name, [])]

    def checked(self, name: str) -> bool:
        return bool(self.text(name))


async def _sent(request: Request) -> Fields:
    """Raises Invalid for what no browser sends."""
    try:
        body = (await request.body()).decode()
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST, errors="strict")
    except ValueError:
        raise Invalid(
            Problem("form", "cannot be read: send it as application/x-www-form-urlencoded")
        ) from None
    found = Fields()
    for name, value in pairs:
        if "\x00" in value:
            raise Invalid(Problem(name, "holds a NUL character"))
        if name != FORM_FIELD:
            found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


Sent = Annotated[Fields, Depends(_sent)]
