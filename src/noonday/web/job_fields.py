"""The form of a job as the body that the API takes; what cannot be read is told by the name of its field."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from noonday.api.bodies import JobBody
from noonday.domain.errors import Invalid, Problem
from noonday.web.forms import Fields

__all__ = ["KINDS", "Wire", "body_of", "field_of", "schedule_of", "wire_of"]

Wire = dict[str, Any]
KINDS: Final = ("http", "service", "fetch", "command", "python")
_WINDOW: Final = re.compile(r"(?:(?P<days>\S.*?)\s+)?(?P<start>[\d:]+)\s*[-–]\s*(?P<end>[\d:]+)")  # noqa: RUF001
_PATH: Final = re.compile(r"[.\[]")
_INPUTS: Final[Mapping[str, str]] = {  # the wire's name -> the form's, where they differ
    "target": "kind",
    "target.type": "kind",
    "target.body": "body",
    "time_config.hour": "time",
    "time_config.minute": "time",
    "time_config.day": "day",
    "time_config.day_of_month": "day_of_month",
    "calendar.holidays": "holidays",
    "calendar.excluded_dates": "excluded_dates",
}


def body_of(fields: Fields, target: Mapping[str, Any] | None = None) -> JobBody:
    """The whole form; `target` is the stored one, whose fields the form does not show."""
    return _checked(wire_of(fields, target))


def schedule_of(fields: Fields) -> JobBody:
    """When alone: a preview needs no target."""
    return _checked(_when(fields))


def wire_of(fields: Fields, target: Mapping[str, Any] | None = None) -> Wire:
    """Raises Invalid with everything that cannot be read at once."""
    problems: list[Problem] = []
    wire: Wire = {}
    for part in (_what, _when, _limits, _more):
        try:
            wire |= part(fields)
        except Invalid as error:
            problems += error.problems
    try:
        wire["target"] = _target(fields, target)
    except Invalid as error:
        problems += error.problems
    if problems:
        raise Invalid(*problems)
    return wire


def field_of(name: str) -> str:
    """The input to which a problem belongs."""
    known = (way for way in _INPUTS if name == way or (name.startswith(f"{way}.") and way != "target"))
    for way in known:
        return _INPUTS[way]
    return _PATH.split(name.removeprefix("target."), maxsplit=1)[0]


def _checked(wire: Wire) -> JobBody:
    try:
        return JobBody.model_validate(wire)
    except ValidationError as exc:
        raise Invalid(*(_problem(line, wire) for line in exc.errors(include_url=False)[:20])) from exc


def _problem(line: Mapping[str, Any], wire: Wire) -> Problem:
    kind = (wire.get("target") or {}).get("type")
    path = [str(step) for step in line["loc"]]
    if path[:1] == ["target"] and path[1:2] == [kind]:
        del path[1]
    if line["type"] == "missing":
        return Problem(".".join(path), "is needed")
    message = str(line["msg"]).removeprefix("Value error, ")
    for noun in ("Input", "String", "List", "Dictionary"):
        message = message.removeprefix(f"{noun} ")
    return Problem(".".join(path), message)


def _what(fields: Fields) -> Wire:
    return {
        "name": fields.text("name") or None,
        "description": fields.text("description"),
        "tags": _words(fields.text("tags")),
        "config": _json(fields, "config", {}),
    }


def _when(fields: Fields) -> Wire:
    mode = fields.text("schedule_type") or "cron"
    made: Wire = {
        "schedule_type": mode,
        "timezone": fields.text("timezone") or None,
        "cron_expression": None,
        "interval_minutes": None,
        "interval_type": None,
        "after_completion": None,
        "frequency": None,
        "time_config": None,
        "run_at": None,
        "trigger_webhook": fields.text("trigger_webhook") or None,
        "trigger_channel": fields.text("trigger_channel") or None,
        "start_at": fields.text("start_at") or None,
        "end_at": fields.text("end_at") or None,
        "max_runs": _number(fields.text("max_runs")),
        "jitter_seconds": _number(fields.text("jitter_seconds")),
        "windows": _windows(fields.text("windows")),
        "calendar": {
            "holidays": fields.text("holidays").upper() or None,
            "excluded_dates": _words(fields.text("excluded_dates")),
        },
        "outside": fields.text("outside") or None,
    }
    return made | _MODES.get(mode, _nothing)(fields)


def _nothing(_: Fields) -> Wire:
    return {}


def _cron(fields: Fields) -> Wire:
    return {"cron_expression": fields.text("cron_expression") or None}


def _interval(fields: Fields) -> Wire:
    return {
        "interval_minutes": _number(fields.text("interval_minutes")),
        "interval_type": fields.text("interval_type") or None,
        "after_completion": fields.checked("after_completion"),
    }


def _calendar(fields: Fields) -> Wire:
    hour, _, minute = fields.text("time").partition(":")
    config: Wire = {"hour": _number(hour), "minute": _number(minute)}
    frequency = fields.text("frequency")
    if frequency == "weekly":
        config["day"] = fields.text("day") or None
    if frequency == "monthly":
        config["day_of_month"] = _number(fields.text("day_of_month"))
    return {"frequency": frequency or None, "time_config": config}


def _once(fields: Fields) -> Wire:
    return {"run_at": fields.text("run_at") or None}


_MODES: Final[Mapping[str, Callable[[Fields], Wire]]] = {
    "cron": _cron,
    "interval": _interval,
    "calendar": _calendar,
    "once": _once,
}


def _limits(fields: Fields) -> Wire:
    numbers = (
        "priority",
        "timeout_seconds",
        "max_retries",
        "retry_backoff_seconds",
        "max_instances",
        "misfire_grace_seconds",
    )
    return {
        **{name: _number(fields.text(name)) for name in numbers},
        "overlap": fields.text("overlap") or None,
        "catch_up": fields.text("catch_up") or None,
        "coalesce": fields.checked("coalesce"),
    }


def _more(fields: Fields) -> Wire:
    return {
        "depends_on": _words(fields.text("depends_on")),
        "on_success_of": _words(fields.text("on_success_of")),
        "retention_runs": _number(fields.text("retention_runs")),
        "retention_days": _number(fields.text("retention_days")),
        "schedule_enabled": fields.checked("schedule_enabled"),
    }


def _target(fields: Fields, stored: Mapping[str, Any] | None) -> Wire:
    kind = fields.text("kind")
    if kind not in KINDS:
        raise Invalid(Problem("kind", "choose what the job runs"))
    kept = dict(stored) if stored is not None and stored.get("type") == kind else {}
    return {**kept, "type": kind, **_TARGETS[kind](fields)}


def _http(fields: Fields) -> Wire:
    return {**_fetch(fields), "method": fields.text("method") or "POST", "body": _body(fields.text("body"))}


def _service(fields: Fields) -> Wire:
    return {"service": fields.text("service"), "endpoint": fields.text("endpoint")}


def _fetch(fields: Fields) -> Wire:
    return {"url": fields.text("url"), "headers": _lines(fields, "headers", ":")}


def _command(fields: Fields) -> Wire:
    try:
        argv = shlex.split(fields.text("argv"))
    except ValueError as error:
        raise Invalid(Problem("argv", f"cannot be read: {error}")) from None
    if not argv:
        raise Invalid(Problem("argv", "is needed: the program and its arguments"))
    return {"argv": argv, "env": _lines(fields, "env", "="), "cwd": fields.text("cwd") or None}


def _python(fields: Fields) -> Wire:
    return {
        "task": fields.text("task"),
        "args": _json(fields, "args", []),
        "kwargs": _json(fields, "kwargs", {}),
    }


_TARGETS: Final[Mapping[str, Callable[[Fields], Wire]]] = {
    "http": _http,
    "service": _service,
    "fetch": _fetch,
    "command": _command,
    "python": _python,
}


def _words(text: str) -> list[str]:
    return [word.strip() for word in re.split(r"[,\n]", text) if word.strip()]


def _number(text: str) -> Any:
    """What is no number stays text, and is told to be none where numbers are checked."""
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        return text or None


def _json(fields: Fields, name: str, otherwise: Any) -> Any:
    text = fields.text(name)
    if not text:
        return otherwise
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(Problem(name, f"is not JSON: {error}")) from None


def _body(text: str) -> Any:
    """As JSON where it is JSON, else as it is written."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def _lines(fields: Fields, name: str, between: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for line in fields.text(name).splitlines():
        key, found, value = line.partition(between)
        if line.strip() and not found:
            raise Invalid(Problem(name, f"{line[:60]!r} has no {between}"))
        if found:
            made[key.strip()] = value.strip()
    return made


def _windows(text: str) -> list[Wire]:
    made = []
    for line in text.splitlines():
        if not line.strip():
            continue
        match = _WINDOW.fullmatch(line.strip())
        if match is None:
            raise Invalid(Problem("windows", f"{line[:60]!r} is not a window; write mon-fri 08:00-18:00"))
        days = {"days": match["days"]} if match["days"] else {}
        made.append({**days, "start": match["start"], "end": match["end"]})
    return made
