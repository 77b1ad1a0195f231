"""API keys over HTTP: made and shown once, listed without the key, revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from noonday.api.services import ApiServices
from noonday.domain.access import Role
from tests.api.caller import Api, StillClock, client_of
from tests.api.people import bearer, guarded, key_for


class Closed(Api):
    admin: dict[str, str]


@pytest.fixture
async def closed(services: ApiServices, clock: StillClock) -> AsyncIterator[Closed]:
    made, keys = guarded(services)
    async with client_of(made) as client:
        api = Closed(client, services.db, clock)
        api.admin = bearer(await key_for(keys, Role.ADMIN))
        clock.advance(seconds=1)
        yield api


async def test_a_key_opens_the_door_until_it_is_revoked(closed: Closed) -> None:
    body = {"name": "ada", "role": "operator", "expires_at": "2027-02-01T00:00:00+01:00"}
    answer = await closed.call("POST", "/api/v2/keys", body, headers=closed.admin)
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"] == f"/api/v2/keys/{made['id']}"
    assert answer.headers["cache-control"] == "no-store"
    key = made.pop("key")
    assert key.startswith(f"nd_{made['prefix']}_")
    assert made["expires_at"] == "2027-01-31T23:00:00Z"
    assert (made["created_by"], made["active"], made["last_used_at"]) == ("the admin", True, None)
    for proof in (bearer(key), {"X-API-Key": key}, {"authorization": f"bearer {key}"}):
        assert (await closed.get("/api/v2/whoami", headers=proof))["name"] == "ada"
    shown = await closed.get(f"/api/v2/keys/{made['prefix']}", headers=closed.admin)
    assert shown == made | {"last_used_at": "2027-01-01T12:00:01Z"}
    gone = await closed.call("DELETE", f"/api/v2/keys/{made['id']}", headers=closed.admin)
    assert gone.status_code == 200
    assert (gone.json()["active"], gone.json()["revoked_by"]) == (False, "the admin")
    refused = await closed.call("GET", "/api/v2/whoami", headers=bearer(key))
    assert refused.status_code == 401
    listed = await closed.get("/api/v2/keys?limit=1", headers=closed.admin)
    assert (listed["total"], listed["limit"], listed["offset"]) == (2, 1, 0)
    assert listed["keys"] == [gone.json()]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"role": "admin"}, "name"),
    ({"name": "", "role": "admin"}, "name"),
    ({"name": "a\nb", "role": "admin"}, "name"),
    ({"name": "a" * 201, "role": "admin"}, "name"),
    ({"name": "a"}, "role"),
    ({"name": "a", "role": "root"}, "role"),
    ({"name": "a", "role": ["admin"]}, "role"),
    ({"name": "a", "role": "service"}, "service"),
    ({"name": "a", "role": "admin", "service": "email"}, "service"),
    ({"name": "a", "role": "service", "service": "../email"}, "service"),
    ({"name": "a", "role": "admin", "expires_at": "2026-12-31T00:00:00Z"}, "expires_at"),
    ({"name": "a", "role": "admin", "expires_at": "soon"}, "expires_at"),
    ({"name": "a", "role": "admin", "expires_at": "0001-01-01T00:00:00+14:00"}, "expires_at"),
    ({"name": "a", "role": "admin", "expires_at": 7}, "expires_at"),
    ({"name": "a", "role": "admin", "prefix": "aaaaaaaa"}, "prefix"),
    ({"name": "a", "role": "admin", "key": "nd_mine"}, "key"),
]


async def test_it_names_what_is_wrong(sqlite_api: Api) -> None:
    for body, field in WRONG:
        answer = await sqlite_api.call("POST", "/api/v2/keys", body)
        assert answer.status_code == 422, (body, answer.text)
        assert answer.json()["errors"][0]["field"] == field
    assert (await sqlite_api.get("/api/v2/keys"))["total"] == 0


async def test_it_knows_no_key_of_that_name(sqlite_api: Api) -> None:
    for ref in ("nobody", "00000000-0000-7000-8000-000000000000", "%2e%2e", "' OR 1=1 --"):
        for method in ("GET", "DELETE"):
            assert (await sqlite_api.call(method, f"/api/v2/keys/{ref}")).status_code == 404


async def test_an_open_api_says_so(sqlite_api: Api) -> None:
    found = await sqlite_api.get("/api/v2/whoami", headers=bearer("anything"))
    assert (found["name"], found["role"], found["open"]) == ("anonymous", "admin", True)
