"""Each request has a name: in the answer, in problems, in log lines, and in no other request's."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
import structlog
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from tests.api.caller import Api, client_of

MADE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.mark.parametrize("name", ["r-1", "0af7651916cd43dd8448eb211c80319c", "A.b:c/d+e=f@g_h" + "x" * 100])
async def test_it_keeps_the_name_that_the_caller_gave(sqlite_api: Api, name: str) -> None:
    answer = await sqlite_api.call("GET", "/health/live", headers={"X-Request-ID": name})
    assert answer.headers["X-Request-ID"] == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "x" * 129, 'a"b', "a\tb", "\u00e4".encode().decode("latin-1")]
)
async def test_it_makes_a_name_where_there_is_none_or_an_odd_one(sqlite_api: Api, name: str) -> None:
    answer = await sqlite_api.call("GET", "/health/live", headers={"X-Request-ID": name.encode("latin-1")})
    assert MADE.fullmatch(answer.headers["X-Request-ID"])
    nameless = await sqlite_api.call("GET", "/health/live")
    assert MADE.fullmatch(nameless.headers["X-Request-ID"])
    assert nameless.headers["X-Request-ID"] != answer.headers["X-Request-ID"]


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", "/api/v2/jobs/unknown", {}, 404),
        ("POST", "/api/v2/jobs", {"json": {"url": 7}}, 422),
        ("POST", "/api/v2/jobs", {"content": b"{"}, 400),
        ("GET", "/api/v2/jobs", {"headers": {"Host": "evil.example"}}, 421),
    ],
)
async def test_it_names_the_request_in_every_problem(
    sqlite_api: Api, method: str, path: str, more: dict[str, object], status: int
) -> None:
    headers = {"X-Request-ID": "r-1", **more.pop("headers", {})}  # type: ignore[dict-item]  # a dict of texts
    answer = await sqlite_api.call(method, path, headers=headers, **more)
    assert (answer.status_code, answer.json()["request_id"]) == (status, "r-1"), answer.text
    assert answer.headers["X-Request-ID"] == "r-1"


async def test_it_names_the_request_in_the_answer_to_a_defect_and_in_its_log(
    services: ApiServices, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []

    def broken() -> LocalStatus:
        seen.append(get_contextvars().get("request_id"))
        raise RuntimeError("defect")

    async with client_of(replace(services, status=broken), forgiving=True) as client:
        answer = await client.get("/api/v2/scheduler/health", headers={"X-Request-ID": "r-1"})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "r-1")
    assert answer.headers["X-Request-ID"] == "r-1"
    assert seen == ["r-1"]
    assert "request failed: GET /api/v2/scheduler/health" in caplog.text


async def test_it_is_bound_for_its_own_request_alone(services: ApiServices) -> None:
    both = asyncio.Barrier(2)
    seen: dict[str, object] = {}

    async def scrape() -> bytes:
        mine = get_contextvars()["request_id"]
        async with both:  # two requests are under way at the same moment
            pass
        with capture_logs([structlog.contextvars.merge_contextvars]) as lines:
            structlog.get_logger("noonday").info("scraped")
        seen[mine] = lines[0]["request_id"]
        return b""

    async with client_of(replace(services, scrape=scrape)) as client:
        calls = [client.get("/metrics", headers={"X-Request-ID": name}) for name in ("one", "two")]
        await asyncio.gather(*calls)
    assert seen == {"one": "one", "two": "two"}
    assert "request_id" not in get_contextvars()
