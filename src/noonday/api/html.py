"""HTML by hand: every text is escaped unless it was made here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["Child", "Markup", "inline", "paragraphs", "tag"]

_VOID = frozenset({"br", "hr", "input", "link", "meta"})
_INLINE = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*)")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable[Any] | None


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """`class_` stands for class, `data_words` for data-words; None and False leave an attribute out."""
    written = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(map(_html, children))}</{name}>")


def inline(text: str) -> Markup:
    """A line of prose in which `code` and **bold** mean what they do in Markdown."""
    return Markup("".join(_styled(part) for part in _INLINE.split(text)))


def paragraphs(text: str) -> Markup:
    return Markup("".join(tag("p", inline(part.strip())) for part in text.split("\n\n") if part.strip()))


def _styled(part: str) -> Markup:
    if not _INLINE.fullmatch(part):
        return Markup(escape(part))
    return tag("code", part[1:-1]) if part[0] == "`" else tag("strong", part[2:-2])


def _html(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    return escape(child) if isinstance(child, str) else "".join(map(_html, child))


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
