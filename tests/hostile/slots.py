"""Every place where a stranger can put a text: fields of bodies, parts of paths, queries and headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp

from tests.api.caller import token_of
from tests.hostile.raw import JSON, Answer, ask

Read = Callable[[Any], Any]
LONGEST = 100_000  # of an address: more than any server takes
_REHEARSAL = "/api/v2/jobs?dry_run=true"
_REGISTER = "/api/jobs/register"
_BULK = "/api/v2/jobs/bulk"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    body: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, app: ASGIApp) -> Answer:
        content = b"" if self.body is None else json.dumps(self.body).encode()
        headers = self.headers if self.body is None else (JSON, *self.headers)
        return await ask(app, self.method, self.target, content, headers)


@dataclass(frozen=True, slots=True)
class Slot:
    """`made` puts a text into a request; `read` finds it again in an answer that says it was stored."""

    name: str
    made: Callable[[str, int], Request]
    read: Read | None = None
    creates: bool = False  # a job, when it is accepted

    def __str__(self) -> str:
        return self.name


def _within(text: str) -> str:
    """Into an address, byte for byte; half a surrogate too, which is no UTF-8."""
    return quote(text[:LONGEST].encode("utf-8", "surrogatepass"), safe="")


def _change(name: str, body: Callable[[str], Any], read: Read | None = None, method: str = "PUT") -> Slot:
    return Slot(f"{method} {name}", lambda text, _: Request(method, "/api/v2/jobs/victim", body(text)), read)


def _query(path: str, name: str) -> Slot:
    return Slot(f"{path}?{name}", lambda text, _: Request("GET", f"{path}?{name}={_within(text)}"))


def _path(method: str, path: str, body: Any = None) -> Slot:
    return Slot(f"{method} {path}", lambda text, _: Request(method, path.replace("*", _within(text)), body))


def _header(name: str, method: str = "GET", path: str = "/api/v2/jobs/victim") -> Slot:
    def made(text: str, _: int) -> Request:
        return Request(method, path, None, ((name.encode(), text.encode("utf-8", "surrogatepass")),))

    return Slot(f"header {name}", made)


def _post(name: str, path: str, body: Callable[[str, int], Any], read: Read | None = None) -> Slot:
    return Slot(f"POST {path} {name}", lambda text, n: Request("POST", path, body(text, n)), read)


def _declared(**more: Any) -> dict[str, Any]:
    return {"service": "mail", "endpoint": "/x", "cronExpression": "@daily", **more}


def _job(**more: Any) -> dict[str, Any]:
    return {"url": "https://example.com/", "schedule_type": "manual", **more}


def fields(run: str) -> list[Slot]:
    """Those of bodies. `run` is an execution that has begun."""
    token = ((b"x-scheduler-callback-token", token_of(run, 1).encode()),)

    def report(text: str, _: int) -> Request:
        path = f"/api/v2/executions/{run}/callback/progress"
        return Request("POST", path, {"progress": 1, "message": text}, token)

    return [
        Slot(
            "POST /api/v2/jobs name",
            lambda text, _: Request("POST", "/api/v2/jobs", _job(name=text)),
            lambda job: job["name"],
            creates=True,
        ),
        Slot(
            "POST /api/v1/jobs name",
            lambda text, n: Request("POST", "/api/v1/jobs", _job(name=f"{text}{n}")),
            creates=True,
        ),
        Slot(
            "POST /api/jobs/register name",
            lambda text, n: Request("POST", _REGISTER, _declared(name=f"{text}~{n}")),
            creates=True,
        ),
        _change("description", lambda text: {"description": text}, lambda job: job["description"]),
        _change("tags", lambda text: {"tags": [text]}, lambda job: job["tags"][0]),
        _change("source_id", lambda text: {"source_id": text}, lambda job: job["source_id"]),
        _change("metadata", lambda text: {"metadata": {"a": [text]}}, lambda job: job["metadata"]["a"][0]),
        _change("config key", lambda text: {"config": {text: 1}}, lambda job: next(iter(job["config"]))),
        _change("channel", lambda text: {"trigger_channel": text}, lambda job: job["trigger_channel"]),
        _change("webhook", lambda text: {"trigger_webhook": "/hooks/" + text}),
        _change("timezone", lambda text: {"timezone": text}, lambda job: job["timezone"]),
        _change("cron", lambda text: {"cron_expression": text}, lambda job: job["cron_expression"]),
        _change("unknown", lambda text: {text: 1}),
        _change("metadata key", lambda text: {"metadata": {text: {text: None}}}, method="PATCH"),
        _change("depends_on", lambda text: {"depends_on": [text]}),
        _change(
            "header",
            lambda text: {"target": {"headers": {"X-Text": text}}},
            lambda job: job["target"]["headers"]["X-Text"],
            method="PATCH",
        ),
        _change("url", lambda text: {"url": "https://example.com/" + text}, lambda job: job["url"][20:]),
        _post("task", _REHEARSAL, lambda text, _: {"target": {"type": "python", "task": text}}),
        _post(
            "args",
            _REHEARSAL,
            lambda text, _: {"target": {"type": "command", "argv": [text, text], "env": {text: text}}},
        ),
        _post("endpoint", _REGISTER, lambda text, _: _declared(name="declared", endpoint="/" + text)),
        _post(
            "displayName",
            _REGISTER,
            lambda text, _: _declared(name="declared", displayName=text, override=True),
            lambda done: done["job"]["displayName"],
        ),
        _post("services", "/api/v2/services", lambda text, _: {"name": text, "url": "https://a.example/"}),
        _post(
            "description",
            "/api/v2/services",
            lambda text, n: {"name": f"s{n}", "url": "https://a.example/", "description": text},
            lambda service: service["description"],
        ),
        _post(
            "name", "/api/v2/keys", lambda text, _: {"name": text, "role": "viewer"}, lambda key: key["name"]
        ),
        _post("filter", _BULK, lambda text, _: {"action": "pause", "filter": text, "dry_run": True}),
        _post("jobs", _BULK, lambda text, _: {"action": "disable", "jobs": [text]}),
        _post("job_id", "/api/v2/triggers/webhooks", lambda text, _: {"job_id": text, "pattern": "/x"}),
        _post("path", "/api/v2/triggers/test", lambda text, _: {"path": text}),
        _post("path", "/api/v2/triggers/webhook", lambda text, _: {"path": text, "data": {text: text}}),
        _post("cron", "/api/v2/schedules/preview", lambda text, _: {"cron_expression": text}),
        _post("holidays", "/api/v2/schedules/preview", lambda text, _: _on_holidays(text)),
        _post("config", "/api/v2/jobs/victim/force-run", lambda text, _: {"config": {text: text}}),
        _post("id", "/api/admin/schedulers", lambda text, _: {"action": "pause", "schedulerId": text}),
        _post("instance", "/api/v2/scheduler/drain", lambda text, _: {"instance": f"no {text}"}),
        Slot("callback message", report),
    ]  # fmt: skip


def _on_holidays(text: str) -> dict[str, Any]:
    return {"cron_expression": "@daily", "calendar": {"holidays": text}}


ADDRESSES = [
    *(
        _query("/api/v2/jobs", name)
        for name in ("q", "name", "tag", "source_id", "service", "cursor", "order")
    ),
    *(_query("/api/v2/jobs", name) for name in ("limit", "offset", "enabled", "status", "x")),
    *(_query("/api/v2/executions", name) for name in ("q", "cursor")),
    *(_query("/api/v2/audit", name) for name in ("q", "actor", "action", "kind", "job", "since")),
    *(_query("/api/jobs", name) for name in ("name", "service")),
    _query("/api/v1/jobs", "name"),
    _query("/api/v2/breakers", "q"),
    _query("/api/v2/jobs/victim/upcoming", "until"),
    _query("/api/v2/forecast", "from"),
    _query("/api/v2/scheduler/metrics", "hours"),
    _path("GET", "/api/v2/jobs/*"),
    _path("DELETE", "/api/v2/jobs/*"),
    _path("POST", "/api/v2/jobs/*/pause"),
    _path("GET", "/api/jobs/*"),
    _path("GET", "/api/v1/jobs/*/stats"),
    _path("GET", "/api/v2/executions/*"),
    _path("GET", "/api/v2/jobs/victim/revisions/*"),
    _path("GET", "/api/v2/breakers/*"),
    _path("DELETE", "/api/v2/services/*"),
    _path("PUT", "/api/v2/services/*", {"url": "https://a.example/"}),
    _path("DELETE", "/api/v2/keys/*"),
    _path("POST", "/api/v2/triggers/webhook/*", {}),
    _path("GET", "/*"),
    _path("GET", "/api/*/jobs"),
]
HEADERS = [
    _header("Idempotency-Key", "POST", "/api/v2/jobs/victim/pause"),
    _header("If-Match", "POST", "/api/v2/jobs/victim/pause"),
    _header("Prefer", "POST", "/api/v2/jobs/victim/retry"),
    _header("X-Request-ID"),
    _header("Authorization"),
    _header("X-API-Key"),
    _header("Accept-Encoding"),
    _header("Content-Length", "POST", "/api/v2/jobs"),
    _header("Content-Type", "POST", "/api/v2/jobs"),
    _header("Origin"),
    _header("Host"),
    _header("X-Webhook-Path", "POST", "/api/v2/triggers/webhook"),
    _header("X-Webhook-Signature", "POST", "/api/v2/triggers/webhook"),
    _header("webhook-id", "POST", "/api/v2/triggers/webhook/nobody"),
]
