"""A job's body from a file or from flags, checked as the API checks it, with words for a person."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from noonday.api.schemas import JobBody
from noonday.api.strict_json import NotJson, parse
from noonday.cli.adding.texts import Wire
from noonday.domain.errors import Invalid, Problem, invalid

__all__ = ["checked", "read"]

_MOST_BYTES = 1 << 20
_WITHOUT_VALUE = {"extra_forbidden": "is not a field of a job", "missing": "is missing"}


def read(source: str) -> list[Wire]:
    """The jobs of a JSON file, or of stdin for `-`: one object, or a list of them."""
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1) if source == "-" else Path(source).read_bytes()
    except OSError as exc:
        raise invalid("--file", source, f"cannot be read: {exc.strerror}") from exc
    if len(raw) > _MOST_BYTES:
        raise invalid("--file", source, "is larger than 1 MiB")
    try:
        found = parse(raw)
    except NotJson as exc:
        raise invalid("--file", source, str(exc).replace("the body", "")) from exc
    jobs = found if isinstance(found, list) else [found]
    if not jobs or not all(isinstance(job, dict) for job in jobs):
        raise invalid("--file", source, "must hold a job as a JSON object, or a list of them")
    return jobs


def checked(wire: Wire) -> JobBody:
    try:
        return JobBody.model_validate(wire)
    except ValidationError as exc:
        raise Invalid(*(_problem(line, wire) for line in exc.errors()[:20])) from exc


def _problem(line: Mapping[str, Any], wire: Wire) -> Problem:
    field, value = _field(line["loc"], wire), line["input"]
    if words := _WITHOUT_VALUE.get(line["type"]):
        return Problem(field, words)
    words = line["msg"].removeprefix("Value error, ").replace("Input should", "should")
    if isinstance(value, Mapping | list):
        return Problem(field, words)
    return invalid(field, value, words).problems[0]


def _field(path: tuple[Any, ...], wire: Any) -> str:
    """The path as it was written: pydantic puts the tag of a union (`http`) between two names."""
    text, here = "", wire
    for step in path:
        if isinstance(here, Mapping) and step not in here and here.get("type") == step:
            continue
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
        here = _inside(here, step)
    return text


def _inside(here: Any, step: Any) -> Any:
    if isinstance(here, Mapping):
        return here.get(step)
    return here[step] if isinstance(here, list) and isinstance(step, int) and step < len(here) else None
