"""What is sent: scheduler. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Literal, Required, TypedDict

__all__ = ["DrainBody", "FinishBody", "MoveBody", "RebalanceBody", "WishBody"]


class DrainBody(TypedDict, total=False):
    instance: str | None


class FinishBody(TypedDict, total=False):
    undo: bool


class MoveBody(TypedDict, total=False):
    """Which jobs go to the other engine: all, those with a tag, or those named."""

    to: Required[int]
    all: bool
    jobs: list[str]
    tag: str | None
    dry_run: bool


class RebalanceBody(TypedDict, total=False):
    jobs: list[str]
    slot_minutes: Literal[5, 10, 15, 20, 30, 60]
    fixed_minutes: bool
    max_moves: int
    dry_run: bool


class WishBody(TypedDict, total=False):
    """What may be moved, and how; without a word, every job that has room."""

    jobs: list[str]
    slot_minutes: Literal[5, 10, 15, 20, 30, 60]
    fixed_minutes: bool
    max_moves: int
