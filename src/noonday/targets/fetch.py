"""Fetches a URL and keeps the figures: status, bytes, items where the answer names them, timing."""

from __future__ import annotations

from dataclasses import replace

from noonday.domain.outcome import Failed, Outcome, Result
from noonday.domain.target import FetchTarget
from noonday.ports import Run
from noonday.targets.answers import Answer, bare_result, judge
from noonday.targets.bounds import NotJson, with_counts
from noonday.targets.calls import Caller
from noonday.targets.config import TargetsConfig
from noonday.targets.network import Refused
from noonday.targets.prepared import Call, Remembered

_FAILURE_TEXT = 2_048


class FetchRunner:
    def __init__(self, config: TargetsConfig, caller: Caller) -> None:
        self._config = config
        self._caller = caller
        self._calls = Remembered[FetchTarget](lambda target: caller.prepare(_call(target)))

    async def run(self, run: Run, target: FetchTarget) -> Outcome:
        try:
            call = self._calls.of(target)
        except Refused as exc:
            return Failed(error=f"not called: {exc}", retryable=False)
        answer = await self._caller.send(run, call)
        if not isinstance(answer, Answer):
            return answer
        result = bare_result(answer)
        metadata = {**result.metadata, **_described(answer)}
        result = _with_items(replace(result, metadata=metadata), answer)
        outcome = judge(answer, (), self._config.clock.now(), result)
        if isinstance(outcome, Failed):
            return replace(outcome, result=replace(result, output_tail=answer.text(_FAILURE_TEXT)))
        return outcome


def _call(target: FetchTarget) -> Call:
    return Call(method="GET", url=target.url, headers=target.headers)


def _with_items(result: Result, answer: Answer) -> Result:
    try:
        return with_counts(result, answer.json())
    except NotJson:
        return result


def _described(answer: Answer) -> dict[str, str]:
    """What tells two fetches of one page apart."""
    wanted = ("content-type", "etag", "last-modified")
    return {name.replace("-", "_"): answer.headers[name][:200] for name in wanted if name in answer.headers}
