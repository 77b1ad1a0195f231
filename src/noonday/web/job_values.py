"""A job as the texts of its form, secrets masked; and what the form of a new one begins with."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from noonday.api.schemas import JobDefaults, job_json
from noonday.domain.job import Job
from noonday.web.job_fields import BASIC

__all__ = ["fresh_values", "values_of"]

_PLAIN: Final = (
    "name",
    "description",
    "schedule_type",
    "timezone",
    "cron_expression",
    "interval_minutes",
    "interval_type",
    "frequency",
    "trigger_webhook",
    "trigger_channel",
    "max_runs",
    "outside",
    "priority",
    "timeout_seconds",
    "max_retries",
    "retry_backoff_seconds",
    "max_instances",
    "misfire_grace_seconds",
    "overlap",
    "catch_up",
    "retention_runs",
    "retention_days",
)
_TICKED: Final = ("after_completion", "coalesce", "schedule_enabled")
_OF_TARGET: Final = ("url", "method", "service", "endpoint", "task", "cwd")


_WHEN: Final = {  # what each way to say when begins with
    "basic": "day",
    "cron_expression": "0 8 * * *",
    "interval_minutes": "15",
    "interval_type": "minutes",
    "frequency": "daily",
    "time": "08:00",
    "day": "monday",
    "day_of_month": "1",
}


def fresh_values(zone: str, defaults: JobDefaults) -> dict[str, str]:
    return {
        **_WHEN,
        "kind": "http",
        "method": "POST",
        "schedule_type": "basic",
        "timezone": zone,
        "priority": "2",
        "overlap": defaults.overlapping.overlap.value,
        "catch_up": defaults.misfire.catch_up.value,
        "outside": "skip",
        "coalesce": "on" if defaults.misfire.coalesce else "",
        "schedule_enabled": "on",
        "max_instances": str(defaults.overlapping.max_instances),
        "max_retries": str(defaults.retry.max_retries),
        "retry_backoff_seconds": _text(defaults.retry.backoff.total_seconds()),
        "timeout_seconds": _text(defaults.timeout.total_seconds()),
        "misfire_grace_seconds": _text(defaults.misfire.grace.total_seconds()),
    }


def values_of(job: Job, names: Mapping[str, str]) -> dict[str, str]:
    """`names` of the jobs it depends on, by id."""
    wire = job_json(job)
    zone = ZoneInfo(job.timing.timezone)
    made = {name: _text(wire[name]) for name in _PLAIN}
    made |= {name: "on" if wire[name] else "" for name in _TICKED}
    made |= {name: _local(wire[name], zone) for name in ("run_at", "start_at", "end_at")}
    made |= {
        "tags": ", ".join(job.tags),
        "config": _pretty(wire["config"]),
        "jitter_seconds": _text(wire["jitter_seconds"] or None),
        "windows": "\n".join(
            f"{', '.join(day[:3] for day in window['days'])} {window['start']}-{window['end']}"
            for window in wire["windows"]
        ),
        "holidays": wire["calendar"]["holidays"] or "",
        "excluded_dates": ", ".join(wire["calendar"]["excluded_dates"]),
        "depends_on": ", ".join(names.get(one, one) for one in job.depends_on),
        "on_success_of": ", ".join(names.get(one, one) for one in job.on_success_of),
    }
    said = {name: text for name, text in (made | _time_config(wire["time_config"])).items() if text}
    return made | _WHEN | said | _basic(wire) | _target(wire["target"])


def _time_config(config: Mapping[str, Any] | None) -> dict[str, str]:
    if config is None:
        return {}
    return {
        "time": f"{config.get('hour', 0):02}:{config.get('minute', 0):02}",
        "day": _text(config.get("day")),
        "day_of_month": _text(config.get("day_of_month")),
    }


def _basic(wire: Mapping[str, Any]) -> dict[str, str]:
    """The basic way that is nearest to it, for who turns to that."""
    if wire["schedule_type"] == "interval":
        return {"basic": "minutes"}
    said = {frequency: basic for basic, frequency in BASIC.items()}
    return {"basic": said.get(wire["frequency"], _WHEN["basic"])}


def _target(target: Mapping[str, Any]) -> dict[str, str]:
    made = {"kind": str(target["type"]), **{name: _text(target.get(name)) for name in _OF_TARGET}}
    body = target.get("body")
    return made | {
        "headers": "\n".join(f"{name}: {value}" for name, value in (target.get("headers") or {}).items()),
        "env": "\n".join(f"{name}={value}" for name, value in (target.get("env") or {}).items()),
        "argv": shlex.join(target.get("argv") or ()),
        "args": _pretty(target.get("args")),
        "kwargs": _pretty(target.get("kwargs")),
        "body": body if isinstance(body, str) else _pretty(body),
    }


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def _local(text: str | None, zone: ZoneInfo) -> str:
    """As an input of date and time takes it: in the job's own zone."""
    if text is None:
        return ""
    return datetime.fromisoformat(text).astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00")
