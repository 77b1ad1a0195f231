"""Every page with whatever is written into its address: a page that says what is wrong, never a defect."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from pydantic import BaseModel

from noonday.store.database import Database
from noonday.web import routes
from tests.api.caller import Api
from tests.hostile.pages import page_routes
from tests.hostile.raw import ask

ACCEPT = (b"accept", b"text/html")
VALUES = [
    "-1",
    "1e999",
    "NaN",
    "9" * 30,
    "%ff%fe",
    "%ED%A0%80",
    "%00",
    quote("\"><xss-probe>'"),
    quote("\u0663\u202e\u200b"),
    "a%0d%0aX-Injected:%201",
    "x" * 5000,
    "0001-01-01",
    "9999-12-31",
    "2027-02-30",
    "0000-00",
    "9999-12",
    "0001-01",
    "0001-01-01T00:00:00%2B14:00",
    "9999-12-31T23:59:59-14:00",
    "..%2f..%2f",
]
_THERE = {"{job}": "there", "{execution}": "00000000-0000-7000-8000-000000000000"}


def names(route: Any) -> list[str]:
    """Of what can be asked for in the address."""
    found: list[str] = []
    for one in route.dependant.query_params:
        kind = one.field_info.annotation
        inside = isinstance(kind, type) and issubclass(kind, BaseModel)
        found += kind.model_fields if inside else [one.alias]
    return found


async def test_a_bad_question_is_a_page(sqlite_app: FastAPI, sqlite_api: Api) -> None:
    routes.install(sqlite_app)
    await sqlite_api.make(name="there")
    run = (await sqlite_api.call("POST", "/api/v2/jobs/there/force-run")).json()["execution_id"]
    wrong: list[str] = []
    asked = 0
    for route in page_routes():
        path = route.path.replace("{job}", "there").replace("{execution}", run)
        for name in names(route):
            for value in VALUES[asked % 2 :: 2]:  # each of them in every other place
                wrong += await _faults(sqlite_app, f"{path}?{name}={value}")
            asked += 1
    assert wrong == []
    assert asked > 30


async def test_a_bad_path_is_a_page(sqlite_app: FastAPI, sqlite_db: Database) -> None:
    routes.install(sqlite_app)
    wrong: list[str] = []
    for route in page_routes():
        for hole in _THERE:
            if hole in route.path:
                for value in VALUES:
                    wrong += await _faults(sqlite_app, route.path.replace(hole, value), at_least=400)
    assert wrong == []


async def _faults(app: FastAPI, target: str, at_least: int = 200) -> list[str]:
    answer = await ask(app, "GET", target, headers=(ACCEPT,))
    headers = dict(answer.headers)
    found = []
    if not at_least <= answer.status < 500:
        found.append(f"{target[:120]}: {answer.status}")
    if answer.status >= 400 and not answer.media.startswith(b"text/html"):
        found.append(f"{target[:120]}: {answer.media!r}")
    if b"x-injected" in headers or b"<xss-probe>" in answer.body:
        found.append(f"{target[:120]}: let something in")
    return found
