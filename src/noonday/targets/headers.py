"""The headers of every call: the scheduler's own, which nobody overrides, and the job's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256

from noonday.domain.execution import Execution
from noonday.targets.config import TargetsConfig
from noonday.targets.network import Refused
from noonday.targets.signing import callback_token, sign

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# What would let a job speak another HTTP than the one that was vetted.
_FRAMING = frozenset(
    [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
# The scheduler's own; a job's header of this name is left out.
_OWN = frozenset(["idempotency-key", "traceparent", "tracestate", "x-scheduled-for"])
_OWN_PREFIXES = ("x-scheduler-", "webhook-")


def job_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The job's headers, the last of each name, without those the scheduler sets itself.

    Raises Refused, naming the header.
    """
    kept: dict[str, str] = {}
    for name, value in headers.items():
        free = _is_free(name)
        if _CONTROL.search(value):
            raise Refused(f"the value of the header {name} contains a line end or another control character")
        if free:
            kept[name] = value
    return kept if len(kept) < 2 else dict({name.lower(): (name, kept[name]) for name in kept}.values())


@lru_cache(maxsize=1024)
def _is_free(name: str) -> bool:
    """Is the name the job's to use, rather than the scheduler's? Only names are remembered, never values."""
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        raise Refused(f"{name[:80]!r} is not a valid header name")
    if lowered in _FRAMING or lowered.startswith("proxy-"):
        raise Refused(f"the header {name} is set by the connection itself")
    return lowered not in _OWN and not lowered.startswith(_OWN_PREFIXES)


def own_headers(config: TargetsConfig, execution: Execution, body: bytes) -> str:
    """Of every call, in lines. Raises ValueError for what would make another line."""
    name = _in_one_line(execution.id)
    return (
        f"{sign(config.signing_secrets, name, config.clock.now(), body)}"
        f"X-Scheduler-Execution-Id: {name}\r\n"
        f"Idempotency-Key: {name}\r\n"
        f"X-Scheduler-Attempt: {execution.attempt}\r\n"
        f"X-Scheduled-For: {rfc3339(execution.scheduled_for)}\r\n"
        f"traceparent: {traceparent(execution)}\r\n"
    )


def callback_headers(config: TargetsConfig, execution: Execution) -> str:
    """For targets that may answer 202; none where nobody could reach this scheduler. As own_headers."""
    base = (config.callback_base or "").rstrip("/")
    if not base:
        return ""
    url = _in_one_line(f"{base}/api/v2/executions/{execution.id}/callback")
    token = callback_token(config.signing_secret, execution.id, execution.attempt)
    return f"X-Scheduler-Callback-Url: {url}\r\nX-Scheduler-Callback-Token: {token}\r\n"


def _in_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a header contains a line end or another control character")
    return text


@lru_cache(maxsize=256)  # jobs are due together
def rfc3339(instant: datetime) -> str:
    utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return utc.isoformat().removesuffix("+00:00") + "Z"


def traceparent(execution: Execution) -> str:
    """W3C: one trace per execution, one span per attempt."""
    span = sha256(f"{execution.id}.{execution.attempt}".encode()).hexdigest()[:16]
    return f"00-{execution.trace}-{span}-01"
