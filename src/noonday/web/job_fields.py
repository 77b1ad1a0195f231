"""The form of a job as the body that the API takes; what cannot be read is told by the name of its field."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from noonday.api.bodies import JobBody
from noonday.domain.errors import Invalid, Problem
from noonday.web.forms import Fields
from noonday.web.typed import json_of, json_or_text, lines, number, time_of_day, windows, words

__all__ = ["BASIC", "body_of", "field_of", "schedule_of"]

Wire = dict[str, Any]
# The basic ways to say when, as frequencies of a calendar; a weekday is none of them, but a cron text.
BASIC: Final = {"day": "daily", "week": "weekly", "month": "monthly"}
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
    """The whole form; `target` is the stored one, whose fields the form does not show.

    Raises Invalid with everything that is wrong at once.
    """
    problems: list[Problem] = []
    wire: Wire = {}
    for part in (_what, _when, _limits, _more, partial(_target, stored=target)):
        try:
            wire |= part(fields)
        except Invalid as error:
            problems += error.problems
    return _checked(wire, problems)


def schedule_of(fields: Fields) -> JobBody:
    """When alone: a preview needs no target."""
    return _checked(_when(fields))


def field_of(name: str) -> str:
    """The input to which a problem belongs."""
    known = (way for way in _INPUTS if name == way or (name.startswith(f"{way}.") and way != "target"))
    for way in known:
        return _INPUTS[way]
    return _PATH.split(name.removeprefix("target."), maxsplit=1)[0]


def _checked(wire: Wire, unread: Sequence[Problem] = ()) -> JobBody:
    try:
        body = JobBody.model_validate(wire)
    except ValidationError as exc:
        wrong = (_problem(line, wire) for line in exc.errors(include_url=False)[:20])
        raise Invalid(*unread, *wrong) from exc
    if unread:
        raise Invalid(*unread)
    return body


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
        "tags": words(fields.text("tags")),
        "config": json_of(fields, "config", {}),
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
        "max_runs": number(fields.text("max_runs")),
        "jitter_seconds": number(fields.text("jitter_seconds")),
        "windows": windows(fields.text("windows")),
        "calendar": {
            "holidays": fields.text("holidays").upper() or None,
            "excluded_dates": words(fields.text("excluded_dates")),
        },
        "outside": fields.text("outside") or None,
    }
    return made | _MODES.get(mode, _nothing)(fields)


def _nothing(_: Fields) -> Wire:
    return {}


def _basic(fields: Fields) -> Wire:
    """What most people want, by the kind of schedule that says it."""
    every = fields.text("basic")
    if every == "minutes":
        number_of = number(fields.text("interval_minutes"))
        return {"schedule_type": "interval", "interval_minutes": number_of, "interval_type": "minutes"}
    at = time_of_day(fields, "time")
    if every == "weekday":
        return {"schedule_type": "cron", "cron_expression": f"{at.minute} {at.hour} * * 1-5"}
    if every not in BASIC:
        raise Invalid(Problem("basic", "choose how often"))
    return {"schedule_type": "calendar", **_calendar_of(fields, BASIC[every])}


def _cron(fields: Fields) -> Wire:
    return {"cron_expression": fields.text("cron_expression") or None}


def _interval(fields: Fields) -> Wire:
    return {
        "interval_minutes": number(fields.text("interval_minutes")),
        "interval_type": fields.text("interval_type") or None,
        "after_completion": fields.checked("after_completion"),
    }


def _calendar(fields: Fields) -> Wire:
    return _calendar_of(fields, fields.text("frequency"))


def _calendar_of(fields: Fields, frequency: str) -> Wire:
    hour, _, minute = fields.text("time").partition(":")
    config: Wire = {"hour": number(hour), "minute": number(minute)}
    if frequency == "weekly":
        config["day"] = fields.text("day") or None
    if frequency == "monthly":
        config["day_of_month"] = number(fields.text("day_of_month"))
    return {"frequency": frequency or None, "time_config": config}


def _once(fields: Fields) -> Wire:
    return {"run_at": fields.text("run_at") or None}


_MODES: Final[Mapping[str, Callable[[Fields], Wire]]] = {
    "basic": _basic,
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
        **{name: number(fields.text(name)) for name in numbers},
        "overlap": fields.text("overlap") or None,
        "catch_up": fields.text("catch_up") or None,
        "coalesce": fields.checked("coalesce"),
    }


def _more(fields: Fields) -> Wire:
    return {
        "depends_on": words(fields.text("depends_on")),
        "on_success_of": words(fields.text("on_success_of")),
        "retention_runs": number(fields.text("retention_runs")),
        "retention_days": number(fields.text("retention_days")),
        "schedule_enabled": fields.checked("schedule_enabled"),
    }


def _target(fields: Fields, stored: Mapping[str, Any] | None) -> Wire:
    kind = fields.text("kind")
    if kind not in _TARGETS:
        raise Invalid(Problem("kind", "choose what the job runs"))
    kept = dict(stored) if stored is not None and stored.get("type") == kind else {}
    return {"target": {**kept, "type": kind, **_TARGETS[kind](fields)}}


def _http(fields: Fields) -> Wire:
    method, body = fields.text("method") or "POST", json_or_text(fields.text("body"))
    return {**_fetch(fields), "method": method, "body": body}


def _service(fields: Fields) -> Wire:
    return {"service": fields.text("service"), "endpoint": fields.text("endpoint")}


def _fetch(fields: Fields) -> Wire:
    return {"url": fields.text("url"), "headers": lines(fields, "headers", ":")}


def _command(fields: Fields) -> Wire:
    try:
        argv = shlex.split(fields.text("argv"))
    except ValueError as error:
        raise Invalid(Problem("argv", f"cannot be read: {error}")) from None
    if not argv:
        raise Invalid(Problem("argv", "is needed: the program and its arguments"))
    return {"argv": argv, "env": lines(fields, "env", "="), "cwd": fields.text("cwd") or None}


def _python(fields: Fields) -> Wire:
    return {
        "task": fields.text("task"),
        "args": json_of(fields, "args", []),
        "kwargs": json_of(fields, "kwargs", {}),
    }


_TARGETS: Final[Mapping[str, Callable[[Fields], Wire]]] = {
    "http": _http,
    "service": _service,
    "fetch": _fetch,
    "command": _command,
    "python": _python,
}
