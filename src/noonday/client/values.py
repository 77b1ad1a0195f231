"""Words that stand for one of several. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "Action",
    "BreakerState",
    "BulkAction",
    "CatchUp",
    "Cause",
    "ExecutionState",
    "Grouping",
    "IntervalUnit",
    "JobState",
    "OnLost",
    "Outside",
    "Overlap",
    "Right",
    "Role",
    "SchedulerState",
    "SchedulersAction",
    "SkipReason",
    "WaitReason",
]

Action = Literal["pause", "resume", "cancel", "run", "delete", "enable", "disable"]
BreakerState = Literal["closed", "open", "half_open"]
BulkAction = Literal["pause", "resume", "cancel", "run", "delete", "enable", "disable"]
CatchUp = Literal["none", "latest", "all"]
Cause = Literal["schedule", "manual", "admin", "trigger", "upstream", "backfill"]
ExecutionState = Literal["pending", "queued", "running", "completed", "failed", "cancelled", "skipped"]
Grouping = Literal["none", "service", "tag"]
IntervalUnit = Literal["seconds", "minutes", "hours", "days"]
JobState = Literal["pending", "scheduled", "running", "paused", "completed", "failed", "cancelled"]
OnLost = Literal["rerun", "fail"]
Outside = Literal["skip", "move"]
Overlap = Literal["skip", "queue", "queue_one", "replace", "allow"]
Right = Literal["read", "run", "operate", "edit", "register", "manage", "access"]
Role = Literal["viewer", "operator", "admin", "service"]
SchedulerState = Literal["RUNNING", "PAUSED", "ERROR", "STOPPED"]
SchedulersAction = Literal["start", "stop", "pause", "resume", "restart", "trigger"]
SkipReason = Literal[
    "paused",
    "disabled",
    "window",
    "calendar",
    "overlap",
    "misfire",
    "coalesced",
    "dependency",
    "max_runs",
    "edited",
    "cancelled",
    "skipped",
]
WaitReason = Literal["retry", "dependency", "overlap", "unknown_task", "breaker"]
