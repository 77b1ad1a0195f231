"""From an HTTP answer to an Outcome: which status means what, Retry-After, JobResult, 202."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from yarl import URL

from noonday.domain.outcome import Accepted, Completed, Failed, Result
from noonday.targets.bounds import (
    KEPT_BYTES,
    NotJson,
    counts_in,
    cut_text,
    kept_answer,
    kept_json,
    parse_json,
    with_counts,
)

_LONGEST_WAIT = timedelta(days=7)
_LONGEST_SILENCE = timedelta(days=1)
_WORTH_A_RETRY = frozenset({408, 425, 429})

_JOB_RESULT = frozenset(["success", "itemsProcessed", "itemsSucceeded", "itemsFailed", "error", "metadata"])


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Answer(NamedTuple):
    url: URL
    status: int
    headers: Mapping[str, str] = NO_HEADERS  # asked for names in lower case
    body: bytes = b""  # the beginning
    received: int = 0
    cut: bool = False  # there was more than we read
    first_byte_ms: int = 0
    total_ms: int = 0

    @property
    def whole(self) -> bool:
        return not self.cut and len(self.body) == self.received

    def json(self) -> Any:
        """Raises NotJson, also for a body too long to be read as JSON."""
        if not self.whole:
            raise NotJson(f"{self.received} bytes are too long for a JSON answer")
        return parse_json(self.body)

    def text(self, limit: int = KEPT_BYTES) -> str | None:
        """The body as text; None where it is empty or plainly none."""
        kind = self.headers.get("content-type", "text/plain").lower()
        textual = kind.startswith("text/") or any(
            word in kind for word in ("json", "xml", "form", "javascript")
        )
        if not self.body or not textual:
            return None
        charset = kind.partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"
        try:
            text = self.body[:limit].decode(charset, "replace")
        except LookupError:
            text = self.body[:limit].decode("utf-8", "replace")
        return cut_text(text, limit)


def bare_result(answer: Answer) -> Result:
    """Status, bytes and timing: what is known of every answer."""
    return Result(status_code=answer.status, bytes_received=answer.received, metadata=_measured(answer))


def _measured(answer: Answer) -> dict[str, Any]:
    timing = {"first_byte": answer.first_byte_ms, "total": answer.total_ms}
    metadata: dict[str, Any] = {"timing_ms": timing}
    if answer.cut:
        metadata["body_cut_at_bytes"] = answer.received
    return metadata


def full_result(answer: Answer) -> Result:
    """The answer itself too: as a value where it is JSON, else as text."""
    try:
        value = answer.json()
    except NotJson:
        return replace(bare_result(answer), output_tail=answer.text())
    metadata = _measured(answer)
    kept, why_not = kept_answer(value, answer.received)
    if why_not:
        metadata["value_dropped"] = why_not
    fields = counts_in(value)
    fields["status_code"] = answer.status
    fields["bytes_received"] = answer.received
    fields["value"] = kept
    fields["metadata"] = metadata
    return Result.of(fields)


def is_success(status: int, expected: tuple[int, ...]) -> bool:
    return status in expected if expected else 200 <= status < 300


def judge(answer: Answer, expected: tuple[int, ...], now: datetime, result: Result) -> Completed | Failed:
    """By the status alone."""
    if is_success(answer.status, expected):
        return Completed(result=result)
    retryable = answer.status >= 500 or answer.status in _WORTH_A_RETRY
    return Failed(
        error=cut_text(_words(answer, expected), 500),
        retryable=retryable,
        retry_after=retry_after(answer.headers.get("retry-after"), now) if retryable else None,
        down=answer.status >= 500,  # a refusal is an answer of a target that lives
        result=result,
    )


def _words(answer: Answer, expected: tuple[int, ...]) -> str:
    start = f"{answer.url.host} answered {answer.status}"
    if 300 <= answer.status < 400:
        return (
            f"{start}, a redirect to {_place(answer)!r}; redirects are not followed: give that URL to the job"
        )
    if expected and answer.status < 400:
        wanted = " or ".join(map(str, expected))
        return f"{start} where {wanted} was expected"
    said = _said(answer)
    return f"{start}: {said}" if said else start


def _place(answer: Answer) -> str:
    """Without the query, which may hold a secret."""
    return answer.headers.get("location", "").partition("?")[0][:200]


def _said(answer: Answer) -> str:
    """What the target itself says went wrong, in one line."""
    try:
        value = answer.json()
    except NotJson:
        return " ".join((answer.text(300) or "").split())
    if isinstance(value, Mapping):
        for key in ("error", "detail", "message", "title"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return ""


def retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Seconds or an HTTP date; None where it says nothing useful. Never longer than a week."""
    if not text:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        wait = timedelta(seconds=int(text)) if len(text) < 9 else _LONGEST_WAIT
    else:
        try:
            when = parsedate_to_datetime(text)
            wait = (when if when.tzinfo else when.replace(tzinfo=UTC)) - now
        except (ValueError, OverflowError):
            return None
    return min(wait, _LONGEST_WAIT) if wait > timedelta() else None


def job_result(answer: Answer, now: datetime) -> Completed | Failed:
    """A service's answer: a success if both the status and its JobResult say so.

    A 2xx without one is a success all the same, and the history says that the JobResult was missing: the work
    was done, and doing it again because of a missing field would be worse.
    """
    result = bare_result(answer)
    try:
        value = answer.json()
    except NotJson as exc:
        return judge(answer, (), now, _without_job_result(answer, result, f"the answer is not JSON: {exc}"))
    if not isinstance(value, Mapping) or "success" not in value:
        return judge(
            answer, (), now, _without_job_result(answer, full_result(answer), "`success` is missing")
        )
    result = _job_result_kept(result, value)
    by_status = judge(answer, (), now, result)
    if value["success"] is True or (isinstance(by_status, Failed) and value["success"] is False):
        return _marked_final(by_status, value)
    if value["success"] is False:
        error = cut_text(str(value.get("error") or "the service reported success: false"), 2_000)
        wait = retry_after(answer.headers.get("retry-after"), now)
        return _marked_final(Failed(error=error, retry_after=wait, down=False, result=result), value)
    error = "not a JobResult: `success` is neither true nor false"
    return Failed(error=error, retryable=False, down=False, result=result)


def _marked_final(outcome: Completed | Failed, value: Mapping[str, Any]) -> Completed | Failed:
    """`retryable: false` beside `success` or in the metadata: the service knows that a retry is no use."""
    metadata = value.get("metadata")
    inner = metadata.get("retryable") if isinstance(metadata, Mapping) else None
    if isinstance(outcome, Failed) and (value.get("retryable") is False or inner is False):
        return replace(outcome, retryable=False, retry_after=None)
    return outcome


def _without_job_result(answer: Answer, result: Result, why: str) -> Result:
    text = result.output_tail if result.value is not None else answer.text()
    return replace(
        result, output_tail=text, metadata={**result.metadata, "job_result_missing": cut_text(why, 300)}
    )


def _job_result_kept(result: Result, value: Mapping[str, Any]) -> Result:
    """Items and metadata in their places; fields beyond the contract stay in `value`."""
    given = value.get("metadata")
    metadata, why_not = kept_json(given if isinstance(given, Mapping) else {})
    metadata = {**result.metadata, **(metadata or {})}
    if why_not:
        metadata["metadata_dropped"] = why_not
    spoken_for = _JOB_RESULT - {"error"} if value["success"] is True else _JOB_RESULT
    rest, _ = kept_json({k: v for k, v in value.items() if k not in spoken_for and v is not None})
    return with_counts(replace(result, value=rest or None, metadata=metadata), value)


def accepted(answer: Answer, heartbeat_seconds: int) -> Accepted:
    """A 202: the target works on and will report. It may say where to cancel it and when to expect it."""
    result = full_result(answer)
    value = result.value if isinstance(result.value, Mapping) else {}
    seconds = value.get("heartbeat_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
        seconds = heartbeat_seconds
    heartbeat = min(timedelta(seconds=max(1.0, float(seconds))), _LONGEST_SILENCE)
    url, why_not = _cancel_url(answer, value.get("cancel_url"))
    if why_not:
        result = replace(result, metadata={**result.metadata, "cancel_url_ignored": why_not})
    return Accepted(heartbeat=heartbeat, cancel_url=url, result=result)


def _cancel_url(answer: Answer, given: object) -> tuple[str | None, str | None]:
    """On the target's own host only: an answer must not send our signed calls to a third party."""
    if not isinstance(given, str) or not given:
        return None, None
    try:
        url = answer.url.join(URL(given))
    except ValueError:
        return None, "it cannot be read"
    if url.scheme not in ("http", "https") or url.raw_host != answer.url.raw_host:
        return None, "it is not on the target's own host"
    return str(url), None
