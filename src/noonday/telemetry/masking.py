"""Texts that a job must not give away, masked wherever they turn up in what its runs write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.outcome import Accepted, Cancelled, Completed, Failed, Outcome, Result, TimedOut
from noonday.telemetry.logs import MASK, redacted

__all__ = ["Veil", "masked", "secrets_of"]

_SHORTEST: Final = 4  # characters; shorter ones are found in every text, and guessed anyway


def secrets_of(job: Job, execution: Execution) -> frozenset[str]:
    """What is masked wherever the job itself is shown, line by line: keys of several lines are read so."""
    shown = (asdict(job.target), job.config, execution.config, job.metadata)
    texts = (text for value in shown for text in _hidden(value, redacted(value)))
    lines = (line.strip() for text in texts for line in text.splitlines())
    return frozenset(line for line in lines if len(line) >= _SHORTEST)


def _hidden(value: Any, shown: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for key, item in value.items():
                yield from _hidden(item, shown[key])
        case list() | tuple():
            for item, seen in zip(value, shown, strict=True):
                yield from _hidden(item, seen)
        case _ if isinstance(shown, str) and MASK in shown and shown != value:
            parts = re.fullmatch("(.+)".join(map(re.escape, shown.split(MASK))), str(value), re.DOTALL)
            yield from parts.groups() if parts else (str(value),)
        case _:
            pass


def masked(outcome: Outcome, job: Job, execution: Execution) -> Outcome:
    """The same end, its texts without the secrets of the job."""
    if type(outcome) is Completed and not outcome.result.output_tail:  # as nearly all of them
        return outcome
    match outcome:
        case Failed():
            veil = Veil(secrets_of(job, execution))
            stack = outcome.stack and veil.over(outcome.stack)
            shown = _under(veil, outcome.result)
            return replace(outcome, error=veil.over(outcome.error), stack=stack, result=shown)
        case Completed() | TimedOut() | Cancelled() | Accepted() if outcome.result.output_tail:
            return replace(outcome, result=_under(Veil(secrets_of(job, execution)), outcome.result))
        case _:
            return outcome


def _under(veil: Veil, result: Result) -> Result:
    return replace(result, output_tail=veil.over(result.output_tail)) if result.output_tail else result


class Veil:
    """Masks secrets in a text that comes in pieces: what may be the beginning of one waits for its rest."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, self._secrets)))
        self._waits = ""

    def over(self, text: str) -> str:
        """A whole text."""
        return self._found.sub(MASK, text) if self._secrets else text

    def through(self, text: str) -> str:
        """The next piece, as far as it may be shown already."""
        if not self._secrets:
            return text
        text = self.over(self._waits + text)
        begin = self._beginning(text)
        self._waits = text[begin:]
        return text[:begin]

    def rest(self) -> str:
        """What still waits; nothing comes behind it."""
        text, self._waits = self._waits, ""
        return text

    def _beginning(self, text: str) -> int:
        """Where a secret may have begun that goes on in the next piece."""
        begin = len(text)
        for secret in self._secrets:
            at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
            while 0 <= at < begin and not secret.startswith(text[at:]):
                at = text.find(secret[0], at + 1)
            if 0 <= at < begin:
                begin = at
        return begin
