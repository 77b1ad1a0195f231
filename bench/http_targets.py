"""Jobs that call a URL, beside the bare client: what the target adds to a call, in processor time.

Client and server have a process each, so that the client's processor time is its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from itertools import cycle, islice
from multiprocessing.connection import Connection
from typing import Any, cast

import aiohttp
import uvloop

from noonday.clock import SystemClock
from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState
from noonday.domain.job import Job, JobId, JobState
from noonday.domain.outcome import Completed
from noonday.domain.schedule import Interval, IntervalUnit, Timing
from noonday.domain.target import HttpTarget
from noonday.ids import new_id
from noonday.ports import Claim, Run
from noonday.targets import Targets, TargetsConfig

TOGETHER = 50  # calls in flight
SLICE = 500  # calls between two looks at the clock
CLAIMS = 300  # as many as fit into the processor's cache, for the engine makes them just before
HOSTS = 10  # of the loopback network: fewer calls to each than the limit for one host
BODY = {"report": "daily", "limit": 100}
ANSWER = b'{"status": "done", "items_processed": 3}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: bench\r\nContent-Length: %d\r\n\r\n"

Rate = tuple[float, float]  # calls per second, microseconds of processor time for each
Rates = list[Rate]
Call = Callable[[], Coroutine[Any, Any, None]]
Way = Callable[[list[str]], AbstractAsyncContextManager[Iterator[Call]]]


class _Answering(asyncio.Protocol):
    """The least that is an HTTP server: one answer to every request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, rest = self._data.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            if len(rest) < length:
                return
            self._data = rest[length:]
            self._transport.write(HEAD % len(ANSWER) + ANSWER)


async def _serve(tell: Connection) -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "0.0.0.0", 0)
    tell.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server_process(tell: Connection) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(tell))


@contextmanager
def server() -> Iterator[int]:
    """Its port."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_server_process, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


@asynccontextmanager
async def _bare(urls: list[str]) -> AsyncIterator[Iterator[Call]]:
    """As its makers show it."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(url: str) -> None:
            async with session.post(url, json=BODY) as response:
                assert response.status == 200
                await response.read()

        yield (partial(call, url) for url in urls)


@asynccontextmanager
async def _targets(urls: list[str]) -> AsyncIterator[Iterator[Call]]:
    """A few hundred claims in turn, each with a target of its own, as they are read from rows."""
    targets = Targets(TargetsConfig(signing_secret=b"x" * 32, public_url="http://scheduler.example"))

    async def call(claim: Claim) -> None:
        run = Run(claim=claim, timeout=claim.job.timeout, grace=timedelta(seconds=30))
        outcome = await targets.run(run)
        assert isinstance(outcome, Completed), outcome

    claims = cycle([_claim(url) for url in urls[:CLAIMS]])
    try:
        yield (partial(call, claim) for claim in islice(claims, len(urls)))
    finally:
        await targets.close()


def _claim(url: str) -> Claim:
    now = SystemClock().now()
    job = Job(
        id=JobId(new_id(now)),
        name="call",
        timing=Timing(schedule=Interval(count=1, unit=IntervalUnit.SECONDS), anchor_at=now),
        target=HttpTarget(url=url, headers={"X-Team": "reports"}, body=dict(BODY)),
        state=JobState.SCHEDULED,
        created_at=now,
        updated_at=now,
    )
    execution = Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.SCHEDULE,
        scheduled_for=now,
        available_at=now,
        state=ExecutionState.RUNNING,
        attempt=1,
        created_at=now,
    )
    return Claim(job, execution)


async def _measure(ways: Sequence[Way], port: int, count: int) -> list[Rates]:
    """Slice by slice in turn, so that whatever else the machine does meets all of them."""
    hosts = [f"http://127.0.0.{1 + host}:{port}/jobs/daily?full=1" for host in range(HOSTS)]
    urls = [hosts[serial % HOSTS] for serial in range(SLICE + count)]
    rates: list[Rates] = [[] for _ in ways]
    async with AsyncExitStack() as stack:
        started = [await stack.enter_async_context(way(urls)) for way in ways]
        for calls in started:  # connects and warms up
            await _slice(calls)
        for _ in range(count // SLICE):
            for calls, found in zip(started, rates, strict=True):
                found.append(await _slice(calls))
    return rates


async def _slice(calls: Iterator[Call]) -> Rate:
    part = islice(calls, SLICE)
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_one_by_one(part) for _ in range(TOGETHER)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return SLICE / wall, cpu / SLICE * 1e6


async def _one_by_one(calls: Iterator[Call]) -> None:
    for call in calls:
        await call()


def _run(count: int, *ways: Way) -> list[Rates]:
    with server() as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(ways, port, count))


def _middle(rates: Rates) -> Rate:
    return statistics.median(rate for rate, _ in rates), statistics.median(cpu for _, cpu in rates)


def limit(count: int) -> float:
    """Calls per second of the bare client."""
    return _middle(_run(count, _bare)[0])[0]


def ours(count: int) -> Rate:
    return _middle(_run(count, _targets)[0])


def side_by_side(count: int) -> tuple[Rate, Rate, float]:
    """The bare client, ours, and how many of its calls ours makes in the same processor time."""
    theirs, own = _run(count, _bare, _targets)
    return (
        _middle(theirs),
        _middle(own),
        statistics.median(a / b for (_, a), (_, b) in zip(theirs, own, strict=True)),
    )


def main() -> None:
    theirs, own, ratio = side_by_side(10_000)
    for name, (rate, cpu) in (("bare client", theirs), ("http target", own)):
        print(f"{name}: {rate:,.0f} calls/s, {cpu:.0f} µs of processor time each")
    print(f"of the bare client's calls in the same processor time: {ratio:.2f}")


if __name__ == "__main__":
    main()
