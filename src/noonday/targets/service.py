"""Calls a job endpoint of a named service: JobContext there, JobResult back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, assert_never

from yarl import URL

from noonday.domain.execution import Cause, Execution
from noonday.domain.outcome import Failed, Outcome
from noonday.domain.services import find_url, variable_of
from noonday.domain.target import ServiceTarget
from noonday.ports import Run
from noonday.targets.answers import Answer, accepted, full_result, job_result
from noonday.targets.calls import Caller
from noonday.targets.config import TargetsConfig
from noonday.targets.network import Refused, domain_of
from noonday.targets.prepared import Call

_DOTS = re.compile(r"(\.|%2e){1,2}", re.IGNORECASE)


class ServiceRunner:
    def __init__(self, config: TargetsConfig, caller: Caller) -> None:
        self._config = config
        self._caller = caller

    async def run(self, run: Run, target: ServiceTarget) -> Outcome:
        try:
            call = self._caller.prepare(self._call(run, target))
        except (Refused, TypeError, ValueError) as exc:
            return Failed(error=f"not called: {exc}", retryable=False)
        answer = await self._caller.send(run, call)
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 202 and self._config.callback_base and not _has_verdict(answer):
            return accepted(answer, target.heartbeat_seconds)
        return job_result(answer, self._config.clock.now())

    def _call(self, run: Run, target: ServiceTarget) -> Call:
        """Another one for each run, which it names."""
        return Call(
            method="POST",
            url=join_endpoint(base_url(self._config, target.service), target.endpoint),
            headers=target.headers,
            body=json.dumps(job_context(run), ensure_ascii=False, allow_nan=False).encode(),
            content_type="application/json",
            callback=True,
        )

    def domain_of(self, target: ServiceTarget) -> str | None:
        try:
            return domain_of(base_url(self._config, target.service))
        except Refused:
            return None


def _has_verdict(answer: Answer) -> bool:
    value = full_result(answer).value
    return isinstance(value, Mapping) and isinstance(value.get("success"), bool)


def job_context(run: Run) -> dict[str, Any]:
    execution = run.claim.execution
    context = {
        "jobName": run.claim.job.name,
        "config": dict(run.config or {}),
        "executionId": execution.id,
        "triggeredBy": _triggered_by(execution),
    }
    if execution.triggered_by:
        context["triggeredByUser"] = execution.triggered_by
    return context


def _triggered_by(execution: Execution) -> str:
    """The contract knows three causes; what no person asked for is the scheduler's doing."""
    match execution.cause:
        case Cause.SCHEDULE | Cause.TRIGGER | Cause.UPSTREAM:
            return "scheduler"
        case Cause.MANUAL:
            return "manual"
        case Cause.ADMIN | Cause.BACKFILL:
            return "admin"
        case _ as never:
            assert_never(never)


def base_url(config: TargetsConfig, service: str) -> str:
    """What the settings say goes before what is stored."""
    found = find_url(config.services, service) or config.find_service(service)
    if found is None:
        raise Refused(f"the service {service!r} has no URL: set {variable_of(service)} or add the service")
    return found


@lru_cache(maxsize=1024)
def join_endpoint(base: str, endpoint: str) -> str:
    """The endpoint only adds to the base: it can neither leave its host nor climb above its path."""
    check_endpoint(endpoint)
    joined = base.rstrip("/") + endpoint
    try:
        there, here = URL(joined), URL(base)
    except ValueError as exc:
        raise Refused(f"{endpoint!r} does not make a URL") from exc
    if here.raw_query_string or here.raw_fragment or here.raw_authority != there.raw_authority:
        raise Refused(f"{endpoint!r} cannot be added to the service's URL")
    return joined


def check_endpoint(endpoint: str) -> None:
    """Raises Refused."""
    if not endpoint.startswith("/") or endpoint.startswith("//"):
        raise Refused("an endpoint starts with one slash")
    if any(c <= " " or c in "\\#\x7f" for c in endpoint):
        raise Refused("an endpoint has no spaces, control characters, backslashes or '#'")
    if any(_DOTS.fullmatch(part) for part in endpoint.partition("?")[0].split("/")):
        raise Refused("an endpoint has no '.' or '..' segments")
