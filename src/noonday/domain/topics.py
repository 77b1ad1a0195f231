"""Events in words: what each kind is called, and the topics that listeners choose from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Topic(StrEnum):
    JOBS = "jobs"
    EXECUTIONS = "executions"
    BREAKERS = "breakers"
    INSTANCES = "instances"
    SERVICES = "services"
    OUTPUT = "output"


_OF_SUBJECT: Final[Mapping[str, Topic]] = {
    "job": Topic.JOBS,
    "execution": Topic.EXECUTIONS,
    "executions": Topic.EXECUTIONS,
    "breaker": Topic.BREAKERS,
    "instance": Topic.INSTANCES,
    "leader": Topic.INSTANCES,
    "engine": Topic.INSTANCES,
    "service": Topic.SERVICES,
    "output": Topic.OUTPUT,
}
# Who drains or resumes an instance is in the audit; that it happened is told by the instance itself.
_CHANGES: Final = frozenset({"job", "execution", "breaker", "engine", "service"})
_PAST: Final[Mapping[str, str]] = {
    "cancel": "cancelled",
    "create": "created",
    "delete": "deleted",
    "disable": "disabled",
    "enable": "enabled",
    "finish": "finished",
    "force-run": "forced",
    "pause": "paused",
    "rebalance": "rebalanced",
    "register": "registered",
    "reopen": "reopened",
    "reset": "reset",
    "resume": "resumed",
    "retry": "retried",
    "revert": "reverted",
    "skip-next": "skipped",
    "update": "updated",
}
MANY: Final = "executions.many"  # more happened than is told one by one
RESYNC: Final = "resync"  # what a listener missed is not kept any more


def topic_of(kind: str) -> Topic | None:
    return _OF_SUBJECT.get(kind.partition(".")[0])


def kind_of_change(subject: str, action: str) -> str | None:
    """The kind of event that an audited change is; None for what the audit alone knows, such as keys."""
    if subject not in _CHANGES:
        return None
    return f"{subject}.{_PAST.get(action) or re.sub(r'[^a-z0-9]+', '_', action.lower()).strip('_')}"
