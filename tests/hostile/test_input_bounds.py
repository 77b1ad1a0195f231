"""Numbers, times and lists beyond all measure: refused by their names, in every place that takes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI

from tests.api.caller import Api
from tests.hostile.raw import JSON, ask
from tools.openapi import application

DOCUMENT: dict[str, Any] = application().openapi()
URL = {"url": "https://example.com/"}
WIDE = [2**31, 2**63, 2**64, -(2**63) - 1, 10**30]
# Endless, empty, never, or of another world; none may take long to refuse.
CRONS = [
    "",
    " ",
    "* * * *",
    "* * * * * * *",
    "*/0 * * * *",
    "*/-1 * * * *",
    "*/99999999999999999999 * * * *",
    "99999999999999999999 * * * *",
    "5-1-3 * * * *",
    "0-59/0 * * * *",
    "0 0 30 2 *",
    "0 0 31 4,6,9,11 *",
    "0 0 32 * *",
    "0 24 * * *",
    "0 0 0 * *",
    "0 0 * 13 *",
    "0 0 * * 8",
    "0 0 * * MONDAYS",
    "@reboot",
    "@every 1ns",
    "@yearly @yearly",
    "* * * * *\n* * * * *",
    "\u0661 * * * *",
    "\u0660 \u0660 * * *",
    "* * * * * # comment",
    "; * * * *",
    "$(id) * * * *",
    ",".join(["*"] * 10_000) + " * * * *",
    ",".join(map(str, range(60))) * 100 + " * * * *",
    "*/1" * 5_000,
    "(" * 50_000,
    "0 0 L-99 * *",
    "0 0 * * 1#6",
    "0 0 1W,2W * * x",
    "H(0-99) * * * *",
    "-1 * * * *",
    "1.5 * * * *",
    "1e3 * * * *",
    "0x10 * * * *",
    "NaN * * * *",
]
FAR = [
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01",
    "10000-01-01T00:00:00Z",
    "2027-02-30",
    "2027-01-01T25:00:00Z",
    "2027-01-01T00:00:00+99:99",
    "-2027-01-01T00:00:00Z",
    "2027-W53-9",
    "99999999999999999999",
    "\u0661\u0662\u0663\u0664-\u0660\u0661-\u0660\u0661",
]


Number = tuple[str, str, int, int]


def _numbers() -> Iterator[Number]:
    """Every number in a query of the document: path, name, least, most."""
    for path, item in DOCUMENT["paths"].items():
        for parameter in item.get("get", {}).get("parameters", ()):
            schema = parameter["schema"]
            for choice in (schema, *schema.get("anyOf", ())):
                if choice.get("type") == "integer" and parameter["in"] == "query":
                    yield path, parameter["name"], choice["minimum"], choice["maximum"]


@pytest.fixture
async def there(sqlite_api: Api) -> Api:
    await sqlite_api.make(name="there")
    return sqlite_api


async def test_every_number_in_a_query_has_its_bounds(there: Api) -> None:
    numbers = list(_numbers())
    assert len(numbers) >= 30
    for path, name, least, most in numbers:
        address = path.replace("{job}", "there")
        wide = [value for value in WIDE if not least <= value <= most]
        for value in [least - 1, most + 1, *wide, "x", "", "1.5", "1e3"]:
            answer = await there.client.get(address, params={name: str(value)})
            assert answer.status_code == 422, (path, name, value, answer.text[:200])
            assert [error["field"] for error in answer.json()["errors"]] == [name], answer.text


def test_no_page_is_longer_than_two_hundred() -> None:
    limits = {path: most for path, name, _, most in _numbers() if name == "limit"}
    for no_page in ("/api/events", "/api/v2/forecast"):  # a stream, and times without rows
        assert limits.pop(no_page) > 200
    assert {path: most for path, most in limits.items() if most > 200} == {}


NUMBERS = [
    name
    for name, schema in DOCUMENT["components"]["schemas"]["JobBody"]["properties"].items()
    if {one.get("type") for one in (schema, *schema.get("anyOf", ()))} & {"integer", "number"}
]


async def test_every_number_of_a_job_has_its_bounds(there: Api) -> None:
    before = await there.get("/api/v2/jobs/there")
    assert len(NUMBERS) >= 10
    for name in NUMBERS:
        for value in (*WIDE, -1, 1e308, -1e308):
            for method, path in (("POST", "/api/v2/jobs"), ("PUT", "/api/v1/jobs/there")):
                answer = await there.call(method, path, {**URL, "max_instances": 1, name: value})
                assert answer.status_code == 422, (name, value, answer.text[:200])
                assert name in [error["field"] for error in answer.json()["errors"]], answer.text
    assert await there.get("/api/v2/jobs/there") == before


async def test_a_cron_text_that_never_or_always_fires_is_refused(there: Api) -> None:
    body = {"name": "x", "service": "mail", "endpoint": "/x"}
    for text in CRONS:
        for method, path, sent, field in (
            ("POST", "/api/v2/jobs", {**URL, "cron_expression": text}, "cron_expression"),
            ("POST", "/api/v2/schedules/preview", {"cron_expression": text}, "cron_expression"),
            ("PUT", "/api/jobs/there/cron", {"cronExpression": text}, "cronExpression"),
            ("POST", "/api/jobs/register", {**body, "cronExpression": text}, "cronExpression"),
        ):
            answer = await there.call(method, path, sent)
            assert answer.status_code == 422, (text[:60], path, answer.text[:300])
            assert [error["field"] for error in answer.json()["errors"]] == [field], answer.text
            assert len(answer.content) < 2_000
    assert (await there.get("/api/v2/jobs"))["total"] == 1


async def test_a_time_at_the_end_of_time_is_no_defect(api: Api) -> None:
    await api.make(name="there")
    for text in FAR:
        for method, path, sent in (
            ("POST", "/api/v2/jobs", {**URL, "run_at": text}),
            ("POST", "/api/v2/jobs", {**URL, "cron_expression": "@daily", "start_at": text}),
            ("POST", "/api/v2/jobs", {**URL, "interval_minutes": 5, "end_at": text}),
            ("PATCH", "/api/v2/jobs/there", {"calendar": {"excluded_dates": [text]}}),
            ("POST", "/api/v2/schedules/preview", {"cron_expression": "@daily", "after": text}),
            ("POST", "/api/v2/keys", {"name": "x", "role": "viewer", "expires_at": text}),
            ("GET", f"/api/v2/forecast?from={quote(text)}", None),
            ("GET", f"/api/v2/jobs/there/upcoming?until={quote(text)}", None),
            ("GET", f"/api/v2/audit?since={quote(text)}", None),
        ):
            answer = await api.call(method, path, sent)
            assert answer.status_code in (200, 201, 422), (path, text, answer.text)
    assert (await api.call("GET", "/api/v2/jobs?limit=200")).status_code == 200
    assert (await api.call("GET", "/api/v2/forecast")).status_code == 200
    assert (await api.call("GET", "/api/v2/scheduler/distribution")).status_code == 200


async def test_no_circle_of_jobs_can_be_closed(api: Api) -> None:
    names = ["a", "b", "c", "d"]
    for before, name in zip([None, *names], names, strict=False):
        await api.make(name=name, depends_on=[before] if before else [])
    jobs = {name: await api.get(f"/api/v2/jobs/{name}") for name in names}
    for field in ("depends_on", "on_success_of"):
        for first, last in (("a", "d"), ("a", "b"), ("b", "c"), ("a", "a"), ("d", "d")):
            for named in (last, jobs[last]["id"]):
                for method, path in (("PUT", "/api/v2"), ("PATCH", "/api/v2"), ("PUT", "/api/v1")):
                    answer = await api.call(method, f"{path}/jobs/{first}", {field: [named]})
                    assert answer.status_code in (409, 422), (field, first, last, answer.text)
    assert {name: await api.get(f"/api/v2/jobs/{name}") for name in names} == jobs


async def test_a_length_that_is_no_number_is_no_defect(sqlite_app: FastAPI) -> None:
    for length in (b"\xb2", b"9" * 5000, b"99999999999999999999", b"-1", b"\xa0", b"1e9", b""):
        answer = await ask(sqlite_app, "POST", "/api/v2/jobs", b"{}", [JSON, (b"content-length", length)])
        assert answer.status in (413, 422), length[:30]


async def test_a_name_of_ten_megabytes_is_not_even_read(sqlite_api: Api) -> None:
    body = {**URL, "name": "x" * 10_000_000}
    for path in ("/api/v2/jobs", "/api/v1/jobs", "/api/jobs/register", "/api/v2/triggers/webhook"):
        answer = await sqlite_api.call("POST", path, body)
        assert (answer.status_code, len(answer.content) < 1_000) == (413, True), answer.text
