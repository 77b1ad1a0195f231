"""How an attempt ended. A value, never an exception: targets return it, settle() matches it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the attempt cost, where that can be known."""

    cpu_time_ms: int | None = None
    memory_peak_mb: float | None = None


@dataclass(frozen=True, kw_only=True)  # without slots, for the sake of `of`
class Result:
    """What the attempt reported; kept whole in the history."""

    items_processed: int | None = None
    items_succeeded: int | None = None
    items_failed: int | None = None
    status_code: int | None = None
    bytes_received: int | None = None
    exit_code: int | None = None
    output_tail: str | None = None
    value: Any = None  # JSON: a Python task's return value, an HTTP answer's JSON
    metadata: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Result:
        """Of some fields by their names, `metadata` among them. The constructor sets those that have their
        defaults too, one by one, which takes four times as long."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made


NOTHING = Result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    result: Result = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: str
    retryable: bool = True
    retry_after: timedelta | None = None  # the target's own wish, obeyed if longer than the back-off
    stack: str | None = None
    down: bool | None = None  # is the target's host to blame? None = this tells nothing of it
    result: Result = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The attempt took longer than `timeout_seconds`; worth a retry like any failure."""

    after: timedelta
    result: Result = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    by: str = ""
    result: Result = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The lease died: the worker crashed, or a remote run fell silent. Not the job's own failure."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Handed back unfinished by an instance that shuts down; starts again elsewhere, burns nothing."""

    detail: str = "the instance shut down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Cannot be run by anybody now, e.g. an unknown Python task; waits visibly until somebody can."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """Not called, because the circuit breaker of its target is open: waits for a time, burns nothing."""

    domain: str
    until: datetime
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The target answered 202 and will report to the callback; the lease now lives by its heartbeats."""

    heartbeat: timedelta
    cancel_url: str | None = None
    result: Result = NOTHING


Outcome = Completed | Failed | TimedOut | Cancelled | Lost | Released | Parked | Deferred | Accepted
