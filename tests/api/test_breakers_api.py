"""Circuit breakers over the API: seen, read, reset."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.store import audit, breakers
from noonday.store.database import Database
from tests.api.caller import Api
from tests.factories import NOON

POLICY = BreakerPolicy()
OPEN = Heard(failures=POLICY.threshold, error="connection refused")


async def told(db: Database, **heard: Heard) -> None:
    named = {name.replace("_", "."): what for name, what in heard.items()}
    await db.write(lambda conn: breakers.hear(conn, named, POLICY, NOON))


async def test_it_lists_who_is_held_back_first(api: Api) -> None:
    assert await api.get("/api/v2/breakers") == {
        "breakers": [],
        "parked": 0,
        "total": 0,
        "limit": 50,
        "offset": 0,
    }
    await told(api.db, a_test=Heard(failures=1, error="503"), b_test=OPEN)
    page = await api.get("/api/v2/breakers")
    assert [one["domain"] for one in page["breakers"]] == ["b.test", "a.test"]
    assert page["breakers"][0] == {
        "domain": "b.test",
        "state": "open",
        "failures": 5,
        "opened_at": "2027-01-01T12:00:00Z",
        "probe_until": None,
        "retry_at": "2027-01-01T12:01:00Z",
        "trips": 1,
        "last_error": "connection refused",
        "updated_at": "2027-01-01T12:00:00Z",
    }
    assert page["breakers"][1]["retry_at"] is None
    page = await api.get("/api/v2/breakers", params={"state": "closed", "limit": 1})
    assert ([one["domain"] for one in page["breakers"]], page["total"]) == (["a.test"], 1)


async def test_it_reads_one_in_any_case_and_says_when_the_next_call_may_go_out(api: Api) -> None:
    await told(api.db, b_test=OPEN)
    assert (await api.get("/api/v2/breakers/B.test"))["state"] == "open"
    api.clock.advance(minutes=5)
    assert (await api.get("/api/v2/breakers/b.test"))["retry_at"] == "2027-01-01T12:05:00Z"


async def test_it_finds_a_domain_with_a_port_and_an_address(api: Api) -> None:
    named = {"b.test:8080": OPEN, "[::1]:9000": OPEN}
    await api.db.write(lambda conn: breakers.hear(conn, named, POLICY, NOON))
    for domain in named:
        found = await api.get(f"/api/v2/breakers/{quote(domain, safe='')}")
        assert found["domain"] == domain


async def test_reset_closes_it_and_is_audited(api: Api) -> None:
    await told(api.db, b_test=OPEN)
    api.clock.advance(seconds=1)
    answer = await api.call("POST", "/api/v2/breakers/b.test/reset")
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["state"], shown["failures"], shown["trips"]) == ("closed", 0, 1)
    assert (await api.get("/api/v2/breakers/b.test"))["state"] == "closed"
    page = await api.db.read(lambda conn: audit.page(conn, "b.test"))
    [entry] = page.items
    assert (entry.action, entry.kind, entry.at) == ("reset", "breaker", NOON + timedelta(seconds=1))
    assert entry.before == {"state": "open", "failures": 5}
    assert entry.after == {"state": "closed", "failures": 0}


async def test_it_says_that_there_is_none(sqlite_api: Api) -> None:
    for method, path in [("GET", "/api/v2/breakers/x.test"), ("POST", "/api/v2/breakers/x.test/reset")]:
        answer = await sqlite_api.call(method, path)
        assert answer.status_code == 404
        assert "x.test" in answer.json()["error"]
    assert (await sqlite_api.db.read(audit.page)).total == 0


async def test_it_refuses_a_state_that_does_not_exist(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/api/v2/breakers?state=ajar")
    assert answer.status_code == 422
    answer = await sqlite_api.call("GET", "/api/v2/breakers?limit=1000")
    assert answer.status_code == 422
