"""Calls any URL in any way; a 202 hands the run over to the target, which then reports to the callback."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import lru_cache

from noonday.domain.execution import Execution
from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.domain.target import HttpTarget
from noonday.ports import Run
from noonday.targets.answers import Answer, accepted, full_result, is_success, judge
from noonday.targets.calls import Caller
from noonday.targets.config import TargetsConfig
from noonday.targets.network import Refused
from noonday.targets.prepared import Call, Remembered

_METHOD = re.compile(r"[A-Z][A-Z-]{0,30}")
_CANCEL_PATIENCE = timedelta(seconds=10)

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class HttpRunner:
    def __init__(self, config: TargetsConfig, caller: Caller) -> None:
        self._config = config
        self._caller = caller
        self._calls = Remembered[HttpTarget](lambda target: caller.prepare(http_call(target)))

    async def run(self, run: Run, target: HttpTarget) -> Outcome:
        try:
            call = self._calls.of(target)
        except Refused as exc:
            return Failed(error=f"not called: {exc}", retryable=False)
        answer = await self._caller.send(run, call)
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 202 and not target.expected_status and self._config.callback_base:
            return accepted(answer, target.heartbeat_seconds)
        result = full_result(answer)
        if is_success(answer.status, target.expected_status):  # which needs no look at the clock
            return Completed(result=result)
        return judge(answer, target.expected_status, self._config.clock.now(), result)

    async def cancel(self, execution: Execution) -> bool:
        """Ask a target that answered 202 to stop; True if it heard, also when it no longer knows the run."""
        if not execution.cancel_url:
            return False
        try:
            call = self._caller.prepare(Call(method="DELETE", url=execution.cancel_url))
        except Refused:
            return False
        answer = await self._caller.deliver(execution, call, _CANCEL_PATIENCE)
        return isinstance(answer, Answer) and (answer.status < 300 or answer.status in (404, 410))


def http_call(target: HttpTarget) -> Call:
    """Raises Refused for a call that cannot be made by anybody."""
    body, content_type = encode(target.body)
    return Call(
        method=_checked_method(target.method),
        url=target.url,
        headers=target.headers,
        body=body,
        content_type=content_type,
        callback=True,
    )


@lru_cache(maxsize=64)
def _checked_method(given: str) -> str:
    method = given.upper()
    if not _METHOD.fullmatch(method) or method in ("CONNECT", "TRACE"):
        raise Refused(f"the method {given[:40]!r} is not allowed")
    return method


def encode(body: object) -> tuple[bytes, str | None]:
    match body:
        case None:
            return b"", None
        case str():
            return body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
        case _:
            try:
                return _encode(body).encode(), "application/json"
            except (TypeError, ValueError) as exc:
                raise Refused(f"the body is not JSON: {exc}") from exc
