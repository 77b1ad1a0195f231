"""Sends calls over HTTP, again where that is safe, and turns what comes back into answers and errors."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from datetime import date
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

import httpx2

from noonday.client.calling import Call
from noonday.client.decoding import decode
from noonday.client.errors import ClientError, UnexpectedAnswer, Unreachable, refusal
from noonday.client.retrying import Retries

__all__ = ["AsyncSender", "Sender", "refused", "retry_after"]

T = TypeVar("T")
_TWICE_IS_ONCE = frozenset({"GET", "HEAD", "PUT"})
_NEVER_ARRIVED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_KEY = "Idempotency-Key"


def chance() -> float:
    return int.from_bytes(os.urandom(4), "big") / 2**32


class _Exchange:
    """One call with its tries: the request, and what to make of each end."""

    def __init__(self, call: Call[Any], retries: Retries, timeout: float) -> None:
        self.call, self.retries = call, retries
        self.headers = {name: value for name, value in call.headers.items() if value is not None}
        if _KEY in call.headers:
            self.headers.setdefault(_KEY, str(uuid4()))  # the same at each try
        self.request: dict[str, Any] = {
            "method": call.method,
            "url": call.path,
            "params": {name: _worded(value) for name, value in call.query.items() if value is not None},
            "headers": self.headers,
            "timeout": timeout + call.patience,
        }
        if call.body is not None:
            self.headers["Content-Type"] = "application/json"
            self.request["content"] = json.dumps(call.body, default=_text, allow_nan=False).encode()

    def after_answer(self, attempt: int, response: httpx2.Response) -> float | None:
        if self._is_answer(response):
            return None
        return self.retries.after_status(attempt, response.status_code, retry_after(response), chance())

    def after_silence(self, attempt: int, error: httpx2.TransportError) -> float | None:
        repeatable = isinstance(error, _NEVER_ARRIVED) or self._twice_is_once
        return self.retries.after_silence(attempt, chance(), repeatable=repeatable)

    @property
    def _twice_is_once(self) -> bool:
        if any(name.lower() == "if-match" for name in self.headers):
            return False  # a second try would be refused because of the first
        return self.call.method in _TWICE_IS_ONCE or _KEY in self.headers

    def silent(self, error: httpx2.TransportError) -> ClientError:
        return Unreachable(f"{self.call.method} {self.call.path}: {str(error) or type(error).__name__}")

    def answer(self, response: httpx2.Response) -> Any:
        if not self._is_answer(response):
            raise refused(response)
        form = self.call.answers[response.status_code]
        if form is None:
            return None
        return response.text if form is str else decode(_json(response), form)

    def _is_answer(self, response: httpx2.Response) -> bool:
        problem = response.headers.get("content-type", "").startswith("application/problem+json")
        return response.status_code in self.call.answers and not problem


class Sender:
    def __init__(self, http: httpx2.Client, retries: Retries, timeout: float) -> None:
        self.http, self.retries, self.timeout = http, retries, timeout

    def __call__(self, call: Call[T]) -> T:
        exchange = _Exchange(call, self.retries, self.timeout)
        for attempt in count(1):
            try:
                response = self.http.request(**exchange.request)
            except httpx2.TransportError as error:
                delay = exchange.after_silence(attempt, error)
                if delay is None:
                    raise exchange.silent(error) from error
            else:
                delay = exchange.after_answer(attempt, response)
                if delay is None:
                    answer: T = exchange.answer(response)
                    return answer
            time.sleep(delay)
        raise AssertionError("count() does not end")


class AsyncSender:
    def __init__(self, http: httpx2.AsyncClient, retries: Retries, timeout: float) -> None:
        self.http, self.retries, self.timeout = http, retries, timeout

    async def __call__(self, call: Call[T]) -> T:
        exchange = _Exchange(call, self.retries, self.timeout)
        for attempt in count(1):
            try:
                response = await self.http.request(**exchange.request)
            except httpx2.TransportError as error:
                delay = exchange.after_silence(attempt, error)
                if delay is None:
                    raise exchange.silent(error) from error
            else:
                delay = exchange.after_answer(attempt, response)
                if delay is None:
                    answer: T = exchange.answer(response)
                    return answer
            await asyncio.sleep(delay)
        raise AssertionError("count() does not end")


def refused(response: httpx2.Response) -> ClientError:
    """What an answer that was not expected means; its body has been read."""
    status = response.status_code
    if status < 400:
        return UnexpectedAnswer(f"the server answered {status}, which this client does not know here")
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, Mapping):
        problem = {"title": response.reason_phrase, "detail": response.text[:500]}
    return refusal(status, problem, retry_after(response))


def retry_after(response: httpx2.Response) -> float | None:
    """Seconds; the form with a date is not used here."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise UnexpectedAnswer(f"the answer is not JSON: {response.text[:100]!r}") from error


def _worded(value: Any) -> Any:
    """For the query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, date) else value


def _text(value: Any) -> str:
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    raise TypeError(f"{value!r} cannot be sent as JSON")
