"""A caller that nobody invited: the whole API without a socket, furnished, called from plain functions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from httpx2 import ASGITransport, AsyncClient, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.outcome import Completed
from noonday.store import breakers
from tests.api.caller import Api, StillClock, token_of

BASE = "http://localhost:8060"


class Hasty:
    """Around the application: a client that leaves a stream of events after its first words."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = asyncio.Event()
        streams = False

        async def hurried_send(message: Message) -> None:
            nonlocal streams
            if message["type"] == "http.response.start":
                streams = (b"content-type", b"text/event-stream; charset=utf-8") in message["headers"]
            elif streams:
                if left.is_set():
                    return
                message["more_body"] = False
                left.set()
            await send(message)

        async def hurried_receive() -> Message:
            if streams:
                await left.wait()
                return {"type": "http.disconnect"}
            return await receive()

        await self._app(scope, hurried_receive, hurried_send)


@dataclass(slots=True)
class Furniture:
    """What a path may name: for each parameter, things that are there."""

    paths: dict[str, list[str]]
    tokens: dict[str, str] = field(default_factory=dict)  # execution -> its callback token


class Stranger:
    """Sends requests one after the other; a defect is an answer of 500, as behind a server."""

    def __init__(self, services: ApiServices) -> None:
        assert isinstance(services.clock, StillClock)
        self.app = create_app(services)
        self._runner = asyncio.Runner()
        transport = ASGITransport(app=Hasty(self.app), raise_app_exceptions=False)
        client = AsyncClient(transport=transport, base_url=BASE)
        self.api = Api(client, services.db, services.clock)
        self._rooms = 0

    def send(self, method: str, path: str, **more: Any) -> Response:
        return self._runner.run(self.api.client.request(method, path, **more))

    def furnish(self) -> Furniture:
        """New things of every kind, beside what is there."""
        self._rooms += 1
        return self._runner.run(_furnish(self.api, f"room{self._rooms}"))

    def close(self) -> None:
        self._runner.run(self.api.client.aclose())
        self._runner.close()


@contextmanager
def stranger(services: ApiServices) -> Iterator[Stranger]:
    made = Stranger(services)
    try:
        yield made
    finally:
        made.close()


async def _furnish(api: Api, room: str) -> Furniture:
    url = f"https://{room}.example.com/"
    names = [f"{room}-1", f"{room}-2"]
    jobs = [await api.make(name=name, url=url, overlap="allow") for name in names]
    runs = []
    for job in jobs:
        answer = await api.call("POST", f"/api/v2/jobs/{job['id']}/force-run")
        runs.append(answer.json()["execution_id"])
    for run in await api.claim():
        if run.id != runs[1]:
            await api.end(run, Completed())
    more = await api.call("POST", f"/api/v2/jobs/{jobs[0]['id']}/force-run")
    key = await api.call("POST", "/api/v2/keys", {"name": room, "role": "viewer"})
    await api.call("POST", "/api/v2/services", {"name": room, "url": url})
    heard = {f"{room}.example.com": Heard(failures=5, error="refused")}
    await api.db.write(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), api.clock.now()))
    return Furniture(
        paths={
            "job": [jobs[0]["name"], jobs[1]["id"]],
            "execution": [*runs, more.json()["execution_id"]],
            "domain": [f"{room}.example.com"],
            "service": [room],
            "key": [key.json()["id"], key.json().get("prefix", "")],
            "number": ["1"],
            "path": [f"{room}/now"],
        },
        tokens={run: token_of(run, 1) for run in runs},
    )
