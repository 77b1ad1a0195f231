"""Where services live: stored, changed and removed over HTTP; what the settings say goes before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from noonday.api.dialects.services import ServicePage, ServiceShape
from noonday.api.services import ApiServices
from noonday.store import audit
from noonday.targets import NetworkPolicy, check_url
from tests.api.caller import Api, StillClock, client_of
from tests.api.people import bearer, claims, guarded, token

PATH = "/api/v2/services"
GIVEN = {"email-service": "http://user:hunter2@localhost:7006"}


@pytest.fixture
async def known(services: ApiServices, clock: StillClock) -> AsyncIterator[Api]:
    policy = NetworkPolicy(mode="strict")
    given = replace(services, service_urls=GIVEN, vet_url=partial(check_url, policy=policy))
    async with client_of(given) as client:
        yield Api(client, services.db, clock)


async def put(api: Api, name: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = await api.call("PUT", f"{PATH}/{name}", body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_it_stores_changes_and_forgets_a_service(api: Api) -> None:
    body = {"name": "crawler-service", "url": "https://crawler.example/", "description": "pages"}
    made = await api.call("POST", PATH, body)
    assert (made.status_code, made.headers["Location"]) == (201, f"{PATH}/crawler-service")
    ServiceShape.model_validate(made.json(), strict=False)
    assert made.json() == {
        "name": "crawler-service",
        "url": "https://crawler.example",
        "description": "pages",
        "source": "stored",
        "variable": None,
        "read_only": False,
        "created_at": "2027-01-01T12:00:00Z",
        "updated_at": "2027-01-01T12:00:00Z",
    }
    assert (await api.call("POST", PATH, body)).status_code == 409
    api.clock.advance(seconds=1)
    moved = await put(api, "crawler-service", url="https://other.example/base")
    assert (moved["url"], moved["description"]) == ("https://other.example/base", "pages")
    assert (moved["created_at"], moved["updated_at"]) == ("2027-01-01T12:00:00Z", "2027-01-01T12:00:01Z")
    api.clock.advance(seconds=1)
    assert await put(api, "crawler-service", url="https://other.example/base/") == moved
    assert await api.get(f"{PATH}/crawler-service") == moved
    await put(api, "a", url="http://a.example")
    page = await api.get(PATH)
    ServicePage.model_validate(page, strict=False)
    assert [one["name"] for one in page["services"]] == ["a", "crawler-service"]
    api.clock.advance(seconds=1)
    assert (await api.call("DELETE", f"{PATH}/crawler-service")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await api.call(method, f"{PATH}/crawler-service")).status_code == 404
    entries = await api.db.read(lambda conn: audit.page(conn, "crawler-service"))
    assert [(e.kind, e.action, e.actor) for e in reversed(entries.items)] == [
        ("service", "create", "anonymous"),
        ("service", "update", "anonymous"),
        ("service", "delete", "anonymous"),
    ]
    assert entries.items[1].before == {"url": "https://crawler.example", "description": "pages"}


async def test_what_the_settings_say_is_read_only(known: Api) -> None:
    shown = await known.get(f"{PATH}/email-service")
    assert (shown["source"], shown["variable"], shown["read_only"]) == (
        "environment",
        "EMAIL_SERVICE_URL",
        True,
    )
    assert "hunter2" not in str(shown)
    for name in ("email-service", "email", "EMAIL_SERVICE_URL"):
        refused = await put(known, name, 409, url="https://mail.example")
        assert "EMAIL_SERVICE_URL" in refused["error"]
        assert (await known.call("DELETE", f"{PATH}/{name}")).status_code == 409
        assert (await known.get(f"{PATH}/{name}"))["name"] == "email-service"
    assert (await known.get(PATH))["total"] == 1


async def test_a_variable_hides_what_was_stored_before(known: Api, api: Api) -> None:
    await put(api, "email", url="https://stored.example")
    (shown,) = (await known.get(PATH))["services"]
    assert (shown["name"], shown["source"]) == ("email", "environment")
    assert "localhost:7006" in shown["url"]
    assert (await known.call("DELETE", f"{PATH}/email")).status_code == 204
    assert (await api.get(PATH))["total"] == 0


async def test_two_spellings_are_one_service(sqlite_api: Api) -> None:
    await put(sqlite_api, "mail-service", url="https://mail.example")
    for name in ("mail", "MAIL", "mail_service"):
        assert "mail-service" in (await put(sqlite_api, name, 409, url="https://x.example"))["error"]
        assert (await sqlite_api.get(f"{PATH}/{name}"))["name"] == "mail-service"


async def test_it_refuses_what_is_no_base_url(known: Api) -> None:
    for url in (
        "",
        "mail.example",
        "ftp://mail.example",
        "https://",
        "https://user:pass@mail.example",
        "https://mail.example/?a=1",
        "https://mail.example/#x",
        "https://mail.example:99999",
        "https://mail example",
        "https://mail.example\\@evil.example",
        "http://169.254.169.254",
        "http://127.0.0.1:8000",
        "http://[::1]/",
        "http://0x7f000001/",
        "http://10.0.0.1",
        "http://metadata.google.internal",
        "https://" + "a" * 2100,
        None,
        7,
    ):
        answer = await known.call("PUT", f"{PATH}/mail", {"url": url})
        assert answer.status_code == 422, (url, answer.text)
        assert answer.json()["errors"][0]["field"] == "url"
    for name in ("a b", "-a", "a" * 101, "%00", "ä"):
        answer = await known.call("PUT", f"{PATH}/{name}", {"url": "https://mail.example"})
        assert answer.status_code in (400, 422), (name, answer.text)
    body = {"url": "https://mail.example", "created_at": "2020-01-01T00:00:00Z"}
    assert (await known.call("PUT", f"{PATH}/mail", body)).status_code == 422
    assert (await known.get(PATH))["total"] == 1


async def test_a_service_sees_itself_alone(services: ApiServices, clock: StillClock) -> None:
    made, _ = guarded(services)
    admin = bearer(token(claims(role="admin")))
    mail = bearer(token(claims(role="service", service="mail")))
    async with client_of(made) as client:
        api = Api(client, services.db, clock)
        for name in ("mail", "crawler"):
            body = {"url": f"https://{name}.example"}
            assert (await api.call("PUT", f"{PATH}/{name}", body, headers=mail)).status_code == 403
            assert (await api.call("PUT", f"{PATH}/{name}", body, headers=admin)).status_code == 200
        seen = await api.get(PATH, headers=mail)
        assert [one["name"] for one in seen["services"]] == ["mail"]
        assert (await api.call("GET", f"{PATH}/crawler", headers=mail)).status_code == 404
