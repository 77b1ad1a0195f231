"""The stream of events: one after the other, over lost connections, without a gap the server can close."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2

from noonday.client.errors import ClientError, Refused, UnexpectedAnswer, Unreachable
from noonday.client.retrying import ASK_AGAIN, Retries
from noonday.client.sending import chance, refused

__all__ = ["AsyncEvents", "Event", "Events"]

_PATH = "/api/events"
_SILENCE = 60.0  # seconds without even a heartbeat: the connection is dead


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. `resync`: events were missed; read anew what you keep of the state."""

    id: str
    type: str
    time: datetime | None
    subject: str | None
    data: Mapping[str, Any]

    @property
    def resync(self) -> bool:
        return self.type == "resync"


class _Course:
    """Where a listener stands: the last event it saw, and how often it came back in vain."""

    def __init__(self, retries: Retries, last: str | None, **params: str | None) -> None:
        self.retries = retries
        self.last = last
        self.params = {name: value for name, value in params.items() if value is not None}
        self.pause: float | None = None  # as the server asked
        self.failures = 0
        self.connected = False

    def request(self, timeout: float) -> dict[str, Any]:
        headers = {"Accept": "text/event-stream"}
        if self.last is not None:
            headers["Last-Event-ID"] = self.last
        limits = httpx2.Timeout(timeout, read=_SILENCE)
        return {"method": "GET", "url": _PATH, "params": self.params, "headers": headers, "timeout": limits}

    def opened(self) -> None:
        self.connected, self.failures = True, 0

    def read(self, sent: httpx2.ServerSentEvent) -> Event | None:
        if sent.retry is not None:
            self.pause = sent.retry / 1000
        if sent.id:
            self.last = sent.id
        return _event(sent) if sent.data or sent.event != "message" else None

    def after(self, error: ClientError) -> float:
        """Seconds until it is tried again; an error at the first try, or one that will last, is raised."""
        lasting = isinstance(error, UnexpectedAnswer) or (
            isinstance(error, Refused) and error.status not in ASK_AGAIN
        )
        if lasting or not self.connected or self.retries.attempts == 1:
            raise error
        return self._delay(error.retry_after if isinstance(error, Refused) else None)

    def after_the_end(self) -> float | None:
        """The server ended the stream, as it does when it stops; None: that was all."""
        return None if self.retries.attempts == 1 else self._delay(self.pause)

    def _delay(self, asked: float | None) -> float:
        self.failures += 1
        return max(self.retries.delay(self.failures, chance()), asked or 0.0)


class Events:
    def __init__(self, http: httpx2.Client, retries: Retries, timeout: float) -> None:
        self._http, self._retries, self._timeout = http, retries, timeout

    def listen(
        self, *, topics: str | None = None, job: str | None = None, last_event_id: str | None = None
    ) -> Generator[Event, None, None]:
        """Events as they happen, until the loop is left. `topics`: `jobs,executions`; `job`: a name or id.

        A connection that was lost is made again, and goes on behind the last event that was seen.
        """
        course = _Course(self._retries, last_event_id, topics=topics, job=job)
        delay: float | None = 0.0
        while delay is not None:
            try:
                with self._http.stream(**course.request(self._timeout)) as response:
                    if response.status_code != 200:
                        response.read()
                        raise refused(response)
                    course.opened()
                    for sent in httpx2.EventSource(response):
                        event = course.read(sent)
                        if event is not None:
                            yield event
                delay = course.after_the_end()
            except (httpx2.TransportError, Refused) as error:
                delay = course.after(_ours(error))
            time.sleep(delay or 0)


class AsyncEvents:
    def __init__(self, http: httpx2.AsyncClient, retries: Retries, timeout: float) -> None:
        self._http, self._retries, self._timeout = http, retries, timeout

    async def listen(
        self, *, topics: str | None = None, job: str | None = None, last_event_id: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """As in `Events`; leave it through `contextlib.aclosing` to close the connection at once."""
        course = _Course(self._retries, last_event_id, topics=topics, job=job)
        delay: float | None = 0.0
        while delay is not None:
            try:
                async with self._http.stream(**course.request(self._timeout)) as response:
                    if response.status_code != 200:
                        await response.aread()
                        raise refused(response)
                    course.opened()
                    async for sent in httpx2.EventSource(response):
                        event = course.read(sent)
                        if event is not None:
                            yield event
                delay = course.after_the_end()
            except (httpx2.TransportError, Refused) as error:
                delay = course.after(_ours(error))
            await asyncio.sleep(delay or 0)


def _ours(error: httpx2.TransportError | Refused) -> ClientError:
    if isinstance(error, Refused):
        return error
    if isinstance(error, httpx2.SSEError):
        return UnexpectedAnswer(str(error))
    return Unreachable(f"GET {_PATH}: {str(error) or type(error).__name__}")


def _event(sent: httpx2.ServerSentEvent) -> Event:
    try:
        told = json.loads(sent.data) if sent.data else {}
    except ValueError as error:
        raise UnexpectedAnswer(f"an event is not JSON: {sent.data[:100]!r}") from error
    if not isinstance(told, dict):
        told = {"data": told}
    data = told.get("data")
    return Event(
        id=str(told.get("id") or sent.id),
        type=str(told.get("type") or sent.event),
        time=datetime.fromisoformat(told["time"]) if told.get("time") else None,
        subject=told.get("subject"),
        data=data if isinstance(data, dict) else told,
    )
