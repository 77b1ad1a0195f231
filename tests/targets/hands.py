"""What the tests of the targets share: runs, a web server on a free port, and a look at processes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from noonday.domain.target import FetchTarget, HttpTarget, PythonTarget, ServiceTarget, Target
from noonday.ports import Claim, Run
from noonday.targets import Targets, TargetsConfig, TaskRegistry
from noonday.targets.signing import sign
from tests.factories import a_job, a_running_execution

SECRET = b"0123456789abcdef0123456789abcdef"


def whsec(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def signed(secrets: Sequence[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of a signature, by their names."""
    lines = sign(secrets, message_id, at, body).removesuffix("\r\n").split("\r\n")
    return dict(line.split(": ", 1) for line in lines)


def a_config(**changes: Any) -> TargetsConfig:
    given: dict[str, Any] = {"signing_secret": SECRET, "tasks": TaskRegistry()}
    return TargetsConfig(**(given | changes))


def a_run(target: Target, *, job: dict[str, Any] | None = None, **changes: Any) -> Run:
    """`job=` and `execution=` change those; anything else changes the run."""
    execution = changes.pop("execution", {})
    made = a_job(target=target, **(job or {}))
    claim = Claim(job=made, execution=a_running_execution(job=made, **execution))
    given: dict[str, Any] = {"timeout": timedelta(seconds=60), "grace": timedelta(seconds=30)}
    return Run(claim=claim, **(given | changes))


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class WebServer:
    """Answers what a test wants; remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.arrived = asyncio.Event()
        self.handler: Handler | None = None
        self._answers: dict[str, Any] = {"text": "fine"}

    def answers(self, **response: Any) -> None:
        """How every request is answered from now on: the arguments of web.Response or web.json_response."""
        self._answers = response

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers: dict[str, str] = {}
        for name, value in request.headers.items():  # one that comes twice shows both
            headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        self.seen.append(Seen(request.method, request.raw_path, headers, body))
        self.arrived.set()
        if self.handler is not None:
            return await self.handler(request)
        if "json" in self._answers:
            given = dict(self._answers)
            return web.json_response(given.pop("json"), **given)
        return web.Response(**self._answers)

    async def __aenter__(self) -> WebServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@asynccontextmanager
async def using(config: TargetsConfig) -> AsyncIterator[Targets]:
    made = Targets(config)
    try:
        yield made
    finally:
        await made.close()


def every_target(url: str) -> list[Target]:
    """One of each kind that calls; the service is `email`."""
    return [HttpTarget(url=url), FetchTarget(url=url), ServiceTarget(service="email", endpoint="/")]


class Progress:
    """Remembers the reports of a run and lets a test wait for the first."""

    def __init__(self) -> None:
        self.reports: list[tuple[float | None, str | None]] = []
        self.first = asyncio.Event()

    async def __call__(self, fraction: float | None, message: str | None) -> None:
        self.reports.append((fraction, message))
        self.first.set()


def call(name: str, *args: Any, **kwargs: Any) -> PythonTarget:
    return PythonTarget(task=name, args=args, kwargs=kwargs)


async def ended_by_cancel(running: asyncio.Future[Any]) -> None:
    """The cancellation is let through, once everything is cleaned up."""
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
