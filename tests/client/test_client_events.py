"""Listening: events come typed and in order, over lost connections, without one lost or doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any

import httpx2
import pytest

from noonday.client import (
    NO_RETRIES,
    AsyncNoondayClient,
    Event,
    NoondayClient,
    NotAllowed,
    Retries,
    UnexpectedAnswer,
    Unreachable,
)
from noonday.client.bodies import JobBody

QUICK = Retries(first=0.001, longest=0.01)
JOB: JobBody = {"name": "hello", "schedule_type": "manual", "url": "https://example.com/"}


class Stream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Chunks of a stream; an exception among them is the end of the connection."""

    def __init__(self, *chunks: bytes | Exception) -> None:
        self.chunks = chunks
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


class Server:
    """Each connection gets the next stream, or the next answer."""

    def __init__(self, *answers: Stream | httpx2.Response | Exception) -> None:
        self.answers = iter(answers)
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Stream):
            return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=answer)
        return answer

    def client(self, retries: Retries = QUICK) -> NoondayClient:
        return NoondayClient("http://localhost", retries=retries, transport=httpx2.MockTransport(self))

    @property
    def went_on_behind(self) -> list[str | None]:
        return [request.headers.get("last-event-id") for request in self.asked]


def event(number: int, kind: str = "execution.ended", **data: Any) -> bytes:
    told = {"id": str(number), "type": f"noonday.{kind}", "time": "2027-01-04T12:00:00+00:00", "data": data}
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(told)}\n\n".encode()


HELLO = b"retry: 1\nid: 6\n\n"
CUT = httpx2.ReadError("cut")


def take(events: Generator[Event, None, None], count: int) -> list[Event]:
    with closing(events):
        return [next(events) for _ in range(count)]


def test_it_goes_on_behind_the_last_event_after_each_kind_of_loss() -> None:
    whole = event(9, job_name="nightly")
    server = Server(
        Stream(HELLO, event(7), event(8)[:30], CUT),
        httpx2.ConnectError("nobody there"),
        httpx2.Response(503, json={"detail": "too many listeners"}),
        Stream(event(8), b": alive\nid: 8\n\n", whole[:11], whole[11:]),
        Stream(event(10)),
    )
    with server.client() as client:
        found = take(client.events.listen(topics="executions", job="nightly"), 4)
    assert [one.id for one in found] == ["7", "8", "9", "10"]
    assert found[2].type == "noonday.execution.ended"
    assert found[2].data == {"job_name": "nightly"}
    assert found[2].time is not None
    assert server.went_on_behind == [None, "7", "7", "7", "9"]
    assert dict(server.asked[0].url.params) == {"topics": "executions", "job": "nightly"}


def test_it_starts_where_it_is_told_and_where_the_server_stood() -> None:
    server = Server(Stream(HELLO), Stream(event(7)))
    with server.client() as client:
        take(client.events.listen(last_event_id="3"), 1)
    assert server.went_on_behind == ["3", "6"]


def test_a_resync_is_told() -> None:
    told = json.dumps({"id": "90", "type": "resync", "data": {"detail": "some are gone"}})
    server = Server(Stream(f"id: 90\nevent: resync\ndata: {told}\n\n".encode(), event(91)))
    with server.client() as client:
        first, second = take(client.events.listen(last_event_id="1"), 2)
    assert (first.resync, second.resync) == (True, False)


def test_what_will_not_pass_is_raised() -> None:
    with Server(httpx2.ConnectError("nobody there")).client() as client, pytest.raises(Unreachable):
        next(client.events.listen())
    no = httpx2.Response(403, json={"detail": "not for you"})
    with Server(Stream(event(7)), no).client() as client:
        events = client.events.listen()
        assert next(events).id == "7"
        with pytest.raises(NotAllowed, match="not for you"):
            next(events)
    page = httpx2.Response(200, html="<p>a proxy</p>")
    with Server(page).client() as client, pytest.raises(UnexpectedAnswer):
        next(client.events.listen())
    with Server(Stream(b"id: 1\ndata: {broken\n\n")).client() as client, pytest.raises(UnexpectedAnswer):
        next(client.events.listen())


def test_without_retries_the_end_of_the_stream_is_the_end() -> None:
    with Server(Stream(event(7))).client(NO_RETRIES) as client:
        assert [one.id for one in client.events.listen()] == ["7"]


def test_leaving_the_loop_closes_the_connection() -> None:
    stream = Stream(event(7), event(8))
    with Server(stream).client() as client:
        take(client.events.listen(), 1)
        assert stream.closed


async def test_the_async_client_listens_likewise() -> None:
    stream = Stream(event(8), event(9))
    server = Server(Stream(event(7), CUT), httpx2.Response(503), stream)
    transport = httpx2.MockTransport(server)
    async with AsyncNoondayClient("http://localhost", retries=QUICK, transport=transport) as client:
        found = []
        async with aclosing(client.events.listen()) as events:
            async for one in events:
                found.append(one.id)
                if len(found) == 2:
                    break
        assert stream.closed
    assert found == ["7", "8"]
    assert server.went_on_behind == [None, "7", "7"]


async def test_it_hears_a_real_server(serve: Callable[..., str]) -> None:
    """A job is made while somebody listens; whoever comes later is told what they missed."""
    async with AsyncNoondayClient(serve(events_kept=100)) as client, asyncio.timeout(20):
        await client.jobs.create({**JOB, "name": "before"})
        async with aclosing(client.events.listen(topics="jobs", last_event_id="0")) as events:
            first = await anext(events)
            await client.jobs.create(JOB)
            second = await anext(events)
        assert [first.data["job_name"], second.data["job_name"]] == ["before", "hello"]
        assert first.type.startswith("noonday.job.")
        async with aclosing(client.events.listen(topics="jobs", last_event_id=first.id)) as events:
            assert await anext(events) == second
