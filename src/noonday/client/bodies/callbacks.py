"""What is sent: callbacks. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

__all__ = ["HeartbeatCall", "ProgressCall", "ReportBody", "ResultBody", "ResultCall"]


class HeartbeatCall(TypedDict, total=False):
    type: Required[Literal["heartbeat"]]


class ProgressCall(TypedDict, total=False):
    progress: float | None
    message: str | None
    output: str | None
    type: Required[Literal["progress"]]


class ReportBody(TypedDict, total=False):
    """A sign of life of a run that answered 202."""

    progress: float | None
    message: str | None
    output: str | None


class ResultBody(TypedDict, total=False):
    """How a run that answered 202 ended; names as in a JobResult, or with underscores."""

    success: Required[bool]
    itemsProcessed: int | None
    itemsSucceeded: int | None
    itemsFailed: int | None
    error: str | None
    metadata: dict[str, Any]
    retryable: bool


class ResultCall(TypedDict, total=False):
    success: Required[bool]
    itemsProcessed: int | None
    itemsSucceeded: int | None
    itemsFailed: int | None
    error: str | None
    metadata: dict[str, Any]
    retryable: bool
    type: Required[Literal["result"]]
