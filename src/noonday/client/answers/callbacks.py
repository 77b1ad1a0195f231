"""What comes back: callbacks. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallbackAnswer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAnswer:
    cancel_requested: bool
