"""Looks at a target when its job is saved: what can never run is refused then, with the field named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.target import (
    CommandTarget,
    FetchTarget,
    HttpTarget,
    PythonTarget,
    ServiceTarget,
    Target,
)
from noonday.targets.headers import job_headers
from noonday.targets.http import http_call
from noonday.targets.network import NetworkPolicy, Refused, check_url
from noonday.targets.service import check_endpoint


def check_target(target: Target, policy: NetworkPolicy, field: str = "target") -> None:
    """Raises Invalid. Whether a service, a task or a program exists is known only where the job runs."""
    match target:
        case HttpTarget():
            _check_http(target, policy, field)
        case FetchTarget():
            check_url(target.url, policy, f"{field}.url")
            _check_headers(target.headers, field)
        case ServiceTarget():
            _check_service(target, field)
        case PythonTarget():
            if not target.task or "\x00" in target.task:
                raise invalid(f"{field}.task", target.task, "is not the name of a task")
        case CommandTarget():
            _check_command(target, field)
        case _ as never:
            assert_never(never)


def _check_http(target: HttpTarget, policy: NetworkPolicy, field: str) -> None:
    check_url(target.url, policy, f"{field}.url")
    _check_headers(target.headers, field)
    for status in target.expected_status:
        if not 100 <= status <= 599:
            raise invalid(f"{field}.expected_status", status, "is not an HTTP status")
    try:
        http_call(target)
    except Refused as exc:
        raise Invalid(Problem(field, str(exc))) from exc


def _check_headers(headers: Mapping[str, str], field: str) -> None:
    try:
        job_headers(headers)
    except Refused as exc:  # the value may be a secret, so only the reason is told
        raise Invalid(Problem(f"{field}.headers", str(exc))) from exc


def _check_service(target: ServiceTarget, field: str) -> None:
    if not target.service.strip():
        raise invalid(f"{field}.service", target.service, "is not the name of a service")
    _check_headers(target.headers, field)
    try:
        check_endpoint(target.endpoint)
    except Refused as exc:
        raise invalid(f"{field}.endpoint", target.endpoint, f"is refused: {exc}") from exc


def _check_command(target: CommandTarget, field: str) -> None:
    if not target.argv or not target.argv[0]:
        raise invalid(f"{field}.argv", list(target.argv), "names no program")
    texts = [*target.argv, *target.env, *target.env.values(), target.cwd or ""]
    if any("\x00" in text for text in texts):
        raise Invalid(Problem(field, "no argument, variable or folder may contain a NUL character"))
    if any(not name or "=" in name for name in target.env):
        raise Invalid(Problem(f"{field}.env", "the name of a variable is empty or contains '='"))
    for name, value in (("cpu_seconds", target.cpu_seconds), ("memory_mb", target.memory_mb)):
        if value is not None and not 0 < value < 2**31:
            raise invalid(f"{field}.{name}", value, "is not a limit: give a whole number above 0")
