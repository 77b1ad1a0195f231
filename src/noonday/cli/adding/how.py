"""How a job is treated: priority, time-out, retries, overlap, dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from noonday.cli import values
from noonday.cli.adding.texts import HOW, SOME, Wire, json_value
from noonday.domain.errors import invalid

__all__ = ["PolicyFlags"]

_LANES = {"1": 1, "high": 1, "2": 2, "normal": 2, "3": 3, "low": 3}


@Parameter(name="*", group=HOW)
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFlags:
    """How the job is treated."""

    priority: str | None = None
    "1 or high, 2 or normal, 3 or low [normal]."
    timeout: str | None = None
    "How long an attempt may take: 30s, 1h [1h]."
    retries: int | None = None
    "How often a failed run is tried again [3]."
    backoff: str | None = None
    "Wait before the first retry; doubles each time, up to an hour [60s]."
    grace: str | None = None
    "How late a run may still start [5m]."
    catch_up: str | None = None
    "Of what was missed by more than the grace, run none, latest or all [none]."
    overlap: str | None = None
    "While a run is still going: skip, queue, queue_one, replace or allow [skip]."
    max_instances: int | None = None
    "How many runs may go at the same time [1]."
    depends_on: Annotated[tuple[str, ...], SOME] = ()
    "Run only when this job has succeeded since. May be repeated."
    after: Annotated[tuple[str, ...], SOME] = ()
    "Run each time this job has succeeded. May be repeated."
    tag: Annotated[tuple[str, ...], SOME] = ()
    "A label to find it by. May be repeated."
    config: str | None = None
    "A JSON object for the target, or @file."
    description: str | None = None
    "For people."

    def wire(self) -> Wire:
        given: Wire = {
            "priority": None if self.priority is None else _lane(self.priority),
            "timeout_seconds": values.seconds("--timeout", self.timeout),
            "max_retries": self.retries,
            "retry_backoff_seconds": values.seconds("--backoff", self.backoff),
            "misfire_grace_seconds": values.seconds("--grace", self.grace),
            "catch_up": self.catch_up,
            "overlap": self.overlap,
            "max_instances": self.max_instances,
            "depends_on": list(self.depends_on) or None,
            "on_success_of": list(self.after) or None,
            "tags": list(self.tag) or None,
            "config": None if self.config is None else json_value("--config", self.config),
            "description": self.description,
        }
        return {name: value for name, value in given.items() if value is not None}


def _lane(text: str) -> int:
    word = text.lower()
    if word not in _LANES:
        raise invalid("--priority", text, "must be 1 or high, 2 or normal, 3 or low")
    return _LANES[word]
