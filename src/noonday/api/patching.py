"""`PATCH` as RFC 7396 means it: what is named changes, objects are merged, null takes away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from noonday.api.bodies import JobBody
from noonday.api.schemas import job_json
from noonday.domain.job import Job

__all__ = ["merged", "patched"]


def patched(patch: Mapping[str, Any], job: Job) -> JobBody:
    """The patch as a body that names whole fields, for this job; secrets stay masked, and so are kept."""
    shown = job_json(job)
    whole = {name: merged(_mergeable(name, shown, given), given) for name, given in patch.items()}
    try:
        return JobBody.model_validate(whole)
    except ValidationError as exc:
        lines = [{**line, "loc": _place(line["loc"], whole)} for line in exc.errors(include_url=False)]
        raise RequestValidationError(lines, body=patch) from None


def _place(path: tuple[int | str, ...], whole: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Without the target's type, which pydantic puts into the path and the patch need not name."""
    field, *rest = path or ("",)
    given = whole.get(str(field))
    tagged = field == "target" and rest and isinstance(given, Mapping) and given.get("type") == rest[0]
    return ("body", *path[:1], *(rest[1:] if tagged else rest))


def merged(current: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    made = dict(current) if isinstance(current, Mapping) else {}
    for name, given in patch.items():
        if given is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), given)
    return made


def _mergeable(name: str, shown: Mapping[str, Any], given: Any) -> Any:
    """A target of another type has other fields: nothing of the old one would fit it."""
    current = shown.get(name)
    if name == "target" and isinstance(given, Mapping) and isinstance(current, Mapping):
        return current if given.get("type", current["type"]) == current["type"] else None
    return current
