"""Bodies that are wrong in one way each: a 4xx that names the field, never a 5xx, and nothing is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.caller import Api

URL = {"url": "https://example.com"}
HTTP = {"type": "http", "url": "https://example.com"}


def http(**changes: Any) -> dict[str, Any]:
    return {"target": {**HTTP, **changes}}


def target(kind: str, **fields: Any) -> dict[str, Any]:
    return {"target": {"type": kind, **fields}}


WINDOW = {"start": "08:00", "end": "18:00"}

# field -> bodies in which it is wrong; the url is added where nothing says what to run
BAD: dict[str, list[dict[str, Any]]] = {
    "": [],
    "zzz": [{"zzz": 1}],
    "name": [
        {"name": ""},
        {"name": " edge "},
        {"name": "a/b"},
        {"name": "../etc"},
        {"name": ".."},
        {"name": "x" * 201},
        {"name": "line\nbreak"},
        {"name": "bidi\u202eevil"},
        {"name": 7},
        {"name": "01a2d11f-0200-73d5-9c42-4282f1388904"},
    ],
    "description": [{"description": "x" * 4001}, {"description": "bell\x07"}],
    "tags": [{"tags": "one"}, {"tags": [str(n) for n in range(33)]}],
    "tags[0]": [{"tags": [1]}, {"tags": [""]}, {"tags": ["x" * 65]}],
    "source_id": [{"source_id": ""}, {"source_id": "x" * 201}],
    "url": [
        {"url": "ftp://example.com"},
        {"url": "example.com"},
        {"url": "http://"},
        {"url": "http://user:pw@example.com"},
        {"url": "http://exa mple.com"},
        {"url": "http://example.com:99999"},
        {"url": "http://[::1"},
        {"url": "javascript:alert(1)"},
        {"url": "http://example.com/" + "x" * 2048},
        {"url": "http://a.example", "target": HTTP},
    ],
    "target": [{"url": None}, {"target": 5}, {"target": {"url": "https://example.com"}}, target("ftp")],
    "target.url": [http(url="x"), http(url=None), target("http")],
    "target.method": [http(method="BREW"), http(method="GET\r\nX: 1")],
    "target.headers": [
        http(headers={"A": "x\r\nB: y"}),
        http(headers={"A\r\nB": "y"}),
        http(headers={"": "y"}),
        http(headers={"Host": "evil"}),
        http(headers={"Content-Length": "0"}),
        http(headers={"A": "snow \u2603"}),
        http(headers={f"H{n}": "" for n in range(65)}),
        http(headers=[]),
    ],
    "target.headers.A": [http(headers={"A": 5})],
    "target.headers.Authorization": [http(headers={"Authorization": "********"})],
    "target.expected_status[0]": [http(expected_status=[99]), http(expected_status=["200"])],
    "target.heartbeat_seconds": [http(heartbeat_seconds=0)],
    "target.extra": [http(extra=1)],
    "target.endpoint": [
        target("service", service="mail", endpoint="//evil"),
        target("service", service="mail", endpoint="@evil"),
        target("service", service="mail", endpoint="/a\\b"),
        target("service", service="mail", endpoint="/a b"),
    ],
    "target.service": [target("service", service="a/b", endpoint="/x"), target("service", endpoint="/x")],
    "target.task": [target("python", task=""), target("python", task="a\nb")],
    "target.args": [target("python", task="a", args={})],
    "target.argv": [target("command", argv=[]), target("command", argv="ls"), target("command")],
    "target.env": [target("command", argv=["ls"], env={"A=B": "c"})],
    "target.memory_mb": [target("command", argv=["ls"], memory_mb=0)],
    "schedule_type": [{"schedule_type": "fortnightly"}],
    "cron_expression": [
        {"cron_expression": "every day"},
        {"cron_expression": "61 * * * *"},
        {"cron_expression": "0 0 30 2 *"},
        {"cron_expression": "@reboot"},
        {"cron_expression": ""},
        {"cron_expression": "* " * 200},
        {"schedule_type": "cron"},
        {"schedule_type": "once", "run_at": "2027-06-01", "cron_expression": "@daily"},
    ],
    "interval_minutes": [
        {"interval_minutes": 0},
        {"interval_minutes": -5},
        {"interval_minutes": 2**63},
        {"interval_minutes": 1.5},
        {"interval_minutes": "5"},
        {"interval_minutes": True},
        {"interval_minutes": 100_000, "interval_type": "days"},
        {"schedule_type": "interval"},
        {"schedule_type": "cron", "cron_expression": "@daily", "interval_minutes": 5},
    ],
    "interval_type": [{"interval_minutes": 5, "interval_type": "fortnights"}],
    "frequency": [{"frequency": "yearly"}, {"schedule_type": "calendar"}],
    "time_config.hour": [{"frequency": "daily", "time_config": {"hour": 24}}],
    "time_config.minute": [{"frequency": "daily", "time_config": {"minute": -1}}],
    "time_config.day": [
        {"frequency": "weekly", "time_config": {"day": "caturday"}},
        {"frequency": "weekly", "time_config": {"day": 0}},
    ],
    "time_config.day_of_month": [{"frequency": "monthly", "time_config": {"day_of_month": 32}}],
    "time_config.second": [{"frequency": "daily", "time_config": {"second": 1}}],
    "time_config.cron": [{"frequency": "cron"}],
    "run_at": [
        {"run_at": "tomorrow"},
        {"run_at": 1798761600},
        {"run_at": "2026-01-01T00:00:00Z"},
        {"run_at": "0001-01-01T00:00:00+14:00"},
        {"run_at": "9999-12-31T23:59:59-12:00"},
        {"schedule_type": "once"},
    ],
    "timezone": [{"timezone": "Europe/Berlim"}, {"timezone": "../../etc/passwd"}, {"timezone": ""}],
    "start_at": [{"start_at": "soon", "cron_expression": "@daily"}],
    "end_at": [
        {"cron_expression": "@daily", "end_at": "2020-01-01T00:00:00Z"},
        {"cron_expression": "@daily", "start_at": "2028-01-01", "end_at": "2027-06-01"},
    ],
    "max_runs": [{"max_runs": 0}, {"max_runs": 2**40}],
    "jitter_seconds": [{"jitter_seconds": -1}, {"jitter_seconds": 86_401}],
    "windows": [{"windows": {}}, {"windows": [WINDOW] * 51}],
    "windows[0].start": [{"windows": [{**WINDOW, "start": "8 o'clock"}]}],
    "windows[0].end": [{"windows": [{**WINDOW, "end": "24:30"}]}, {"windows": [{**WINDOW, "end": "08:00"}]}],
    "windows[1].days": [
        {"windows": [WINDOW, {**WINDOW, "days": ["someday"]}]},
        {"windows": [WINDOW, {**WINDOW, "days": []}]},
    ],
    "calendar.excluded_dates[0]": [{"calendar": {"excluded_dates": ["2027-02-30"]}}],
    "calendar.holidays": [{"calendar": {"holidays": "Atlantis"}}, {"calendar": {"holidays": "XX"}}],
    "outside": [{"outside": "ignore"}],
    "priority": [{"priority": 0}, {"priority": 4}, {"priority": "1"}, {"priority": True}],
    "timeout_seconds": [{"timeout_seconds": 0}, {"timeout_seconds": 10**9}, {"timeout_seconds": "60"}],
    "max_retries": [{"max_retries": -1}, {"max_retries": 1001}],
    "retry_backoff_seconds": [{"retry_backoff_seconds": -1}],
    "misfire_grace_seconds": [{"misfire_grace_seconds": -1}],
    "coalesce": [{"coalesce": "yes"}],
    "catch_up": [{"catch_up": "some"}],
    "max_instances": [{"max_instances": 0}],
    "overlap": [{"overlap": "maybe"}],
    "depends_on": [{"depends_on": "a"}, {"depends_on": [str(n) for n in range(51)]}],
    "depends_on[0]": [{"depends_on": ["nobody"]}, {"depends_on": [5]}],
    "on_success_of[0]": [{"on_success_of": ["01a2d11f-0200-73d5-9c42-4282f1388904"]}],
    "trigger_webhook": [{"trigger_webhook": ""}, {"trigger_webhook": "/a\nb"}],
    "trigger_channel": [{"trigger_channel": ""}],
    "schedule_enabled": [{"schedule_enabled": "true"}],
    "retention_days": [{"retention_days": -1}],
    "scheduler_version": [{"scheduler_version": 3}],
    "config": [{"config": []}, {"config": "x"}],
    "config.token": [{"config": {"token": "********"}}],
    "metadata": [{"metadata": 5}],
}  # fmt: skip
CASES = [(field, body) for field, bodies in BAD.items() for body in bodies]


def whole(body: dict[str, Any]) -> dict[str, Any]:
    return body if body.keys() & {"url", "target"} else {**URL, **body}


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 120


@pytest.mark.parametrize(("field", "body"), CASES, ids=lambda v: v if isinstance(v, str) else str(v)[:60])
async def test_it_refuses_a_bad_body_and_names_the_field(
    sqlite_api: Api, field: str, body: dict[str, Any]
) -> None:
    answer = await sqlite_api.call("POST", "/api/v2/jobs", whole(body))
    problem = answer.json()
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert field in [error["field"] for error in problem["errors"]], problem
    (error,) = [error for error in problem["errors"] if error["field"] == field][:1]
    assert error["pointer"] == "#/" + field.replace("[", "/").replace("]", "").replace(".", "/")
    assert field in problem["error"]
    assert (await sqlite_api.get("/api/v2/jobs"))["total"] == 0


async def test_it_refuses_the_same_bodies_on_each_database_and_as_a_change(api: Api) -> None:
    job = await api.make(name="there")
    for field, body in CASES:
        created = await api.call("POST", "/api/v2/jobs", whole(body))
        assert 400 <= created.status_code < 500, (field, body, created.text)
        changed = await api.call("PUT", "/api/v2/jobs/there", body)
        assert changed.status_code < 500, (field, body, changed.text)
        if changed.status_code == 200:  # what is missing for a new job may be there in this one
            await api.call("PUT", "/api/v2/jobs/there", job)
    assert (await api.get("/api/v2/jobs"))["total"] == 1


RAW: dict[str, tuple[bytes, int]] = {
    "not JSON": (b"{", 400),
    "a word": (b"hello", 400),
    "not UTF-8": (b'{"name": "\xff"}', 400),
    "a list": (b"[]", 422),
    "a number": (b"5", 422),
    "null": (b"null", 422),
    "NaN": (b'{"url": "https://a.b", "config": {"x": NaN}}', 422),
    "Infinity": (b'{"url": "https://a.b", "config": {"x": -Infinity}}', 422),
    "a number beyond floats": (b'{"url": "https://a.b", "config": {"x": 1e999}}', 422),
    "a number of 5000 digits": (b'{"url": "https://a.b", "config": {"x": ' + b"9" * 5000 + b"}}", 422),
    "a number of 100 digits": (b'{"url": "https://a.b", "config": {"x": ' + b"9" * 100 + b"}}", 422),
    "NUL in a value": (b'{"url": "https://a.b", "name": "a\\u0000b"}', 422),
    "NUL in a key": (b'{"url": "https://a.b", "config": {"a\\u0000": 1}}', 422),
    "half a surrogate": (b'{"url": "https://a.b", "config": {"a": "\\ud800"}}', 422),
    "too deep": (b'{"config": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}", 422),
    "far too deep": (b"[" * 100_000 + b"]" * 100_000, 422),
    "too many values": (b'{"config": {"a": [' + b"1," * 150_000 + b"1]}}", 422),
    "a megabyte of name": (json.dumps({"name": "x" * (1 << 20)}).encode(), 413),
    "nothing": (b"", 422),
}


@pytest.mark.parametrize("what", RAW)
async def test_it_refuses_a_raw_body(api: Api, what: str) -> None:
    body, status = RAW[what]
    answer = await api.client.post("/api/v2/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["error"]
    assert len(answer.content) < 5000


async def test_it_does_not_repeat_a_secret_in_a_refusal(sqlite_api: Api) -> None:
    bodies: list[dict[str, Any]] = [
        {"target": {**HTTP, "headers": {"Authorization": "Bearer s3cr3t\r\nX: y"}}},
        {"url": "https://user:s3cr3t@example.com"},
        {"url": "ftp://example.com/?token=s3cr3t"},
        {"password": "s3cr3t"},
        {"config": "password=s3cr3t"},
    ]
    for body in bodies:
        answer = await sqlite_api.call("POST", "/api/v2/jobs", whole(body))
        assert answer.status_code == 422
        assert "s3cr3t" not in answer.text, answer.text
