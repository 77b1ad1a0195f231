"""Targets on the wire: the fields of the domain under their own names, secrets masked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, assert_never
from urllib.parse import urlsplit

from noonday.api.bodies import JobBody, TargetBody
from noonday.control.secrets import redacted, restored
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.target import (
    CommandTarget,
    FetchTarget,
    HttpTarget,
    PythonTarget,
    ServiceTarget,
    Target,
)

__all__ = ["apply_target", "default_name", "target_json", "target_url"]

_KINDS: dict[str, Callable[..., Target]] = {
    "http": HttpTarget,
    "service": ServiceTarget,
    "fetch": FetchTarget,
    "python": PythonTarget,
    "command": CommandTarget,
}
_TUPLES = frozenset({"args", "argv", "expected_status"})


def apply_target(body: JobBody, current: Target | None) -> Target:
    """The target with what the body names of it; a `url` alone means fetch, or moves what is there."""
    if body.target is None:
        return _moved(current, body.url)
    target = _made(body.target, current)
    if body.url is not None and body.url not in (target_url(target), redacted(target_url(target))):
        raise invalid("url", redacted(body.url), "differs from the target; send one of both")
    return target


def _made(body: TargetBody, current: Target | None) -> Target:
    values = restored(body.model_dump(), _within_reach(body, current), "target")
    return _KINDS[body.type](**{k: tuple(v) if k in _TUPLES else v for k, v in values.items()})


def _within_reach(body: TargetBody, current: Target | None) -> dict[str, Any] | None:
    """What is stored of secrets for this target: none where it calls another place than before.

    Otherwise whoever may edit a job could have its secrets sent to themselves.
    """
    if current is None or current.type != body.type or _place(body) != _place(current):
        return None
    return _plain(current)


def _place(target: TargetBody | Target) -> object:
    url = getattr(target, "url", None)
    if isinstance(url, str):
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port
    program = getattr(target, "argv", (None,))[0]
    return getattr(target, "service", None) or getattr(target, "task", None) or program


def _moved(current: Target | None, url: str | None) -> Target:
    """The same kind of call to another place."""
    match current:
        case None if url is None:
            raise Invalid(Problem("target", "is needed, or a url to fetch"))
        case None:
            return FetchTarget(url=restored(url, None, "url"))
        case _ if url is None:
            return current
        case HttpTarget() | FetchTarget():
            moved = replace(current, url=restored(url, current.url, "url"))
            if _place(moved) != _place(current) and redacted(current.headers) != current.headers:
                raise invalid("url", redacted(url), "is another place: send the secret headers anew")
            return moved
        case _:
            raise invalid("url", redacted(url), f"does not belong to a target of type {current.type}")


def target_url(target: Target) -> str | None:
    return target.url if isinstance(target, HttpTarget | FetchTarget) else None


def _plain(target: Target) -> dict[str, Any]:
    return {field.name: getattr(target, field.name) for field in fields(target)}


def target_json(target: Target) -> dict[str, Any]:
    shown: dict[str, Any] = redacted(_plain(target))
    return shown


def default_name(target: Target, job_id: str) -> str:
    """Something readable and unique for a job without a name: what it calls and the end of its id."""
    match target:
        case HttpTarget() | FetchTarget():
            stem = urlsplit(target.url).hostname or "job"
        case ServiceTarget():
            stem = target.endpoint.rstrip("/").rpartition("/")[2].partition("?")[0] or target.service
        case PythonTarget():
            stem = target.task.replace(":", ".").rpartition(".")[2]
        case CommandTarget():
            stem = target.argv[0].rpartition("/")[2]
        case _:
            assert_never(target)
    clean = "".join(c if c.isalnum() or c in "._-" else "-" for c in stem).strip("-.")
    return f"{clean[:80] or 'job'}-{job_id.replace('-', '')[-6:]}"
