"""Long answers are packed for those who can unpack them; streams are not."""

from __future__ import annotations

import gzip

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from httpx2 import ASGITransport, AsyncClient

from noonday.api.app import create_app
from noonday.api.callers import open_to_all
from noonday.api.services import ApiServices
from tests.api.caller import Api


async def test_it_packs_long_answers_for_those_who_ask(sqlite_api: Api) -> None:
    for number in range(5):
        await sqlite_api.make(name=f"job-{number}")
    plain = await sqlite_api.call("GET", "/api/v2/jobs", headers={"Accept-Encoding": "identity"})
    packed = await sqlite_api.call("GET", "/api/v2/jobs", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 3
    assert packed.json() == plain.json()
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert "Accept-Encoding" in plain.headers["Vary"]


async def test_it_leaves_short_answers_alone(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/health/live", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(("media", "packed"), [("text/event-stream", False), ("application/x-ndjson", True)])
async def test_it_does_not_hold_back_the_events_of_a_stream(
    services: ApiServices, media: str, packed: bool
) -> None:
    app: FastAPI = create_app(services)

    async def stream() -> StreamingResponse:
        async def words() -> object:
            yield b"data: 1\n\n" * 500

        return StreamingResponse(words(), media_type=media)  # type: ignore[arg-type]  # yields bytes

    app.add_api_route("/stream", stream, dependencies=[open_to_all])
    transport = ASGITransport(app=app)
    async with (
        AsyncClient(transport=transport, base_url="http://localhost:8060") as client,
        client.stream("GET", "/stream", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        raw = b"".join([part async for part in answer.aiter_raw()])
    assert ("Content-Encoding" in answer.headers) is packed
    assert (gzip.decompress(raw) if packed else raw) == b"data: 1\n\n" * 500
