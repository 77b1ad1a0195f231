"""What is sent: audit. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Required, TypedDict

__all__ = ["RevertBody"]


class RevertBody(TypedDict, total=False):
    revision: Required[int]
