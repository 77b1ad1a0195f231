"""`q=` and `cursor=` of the lists: one grammar, pages that go on, and for services their own jobs alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from noonday.api.paging import cursor_of, mark_of
from noonday.api.services import ApiServices
from noonday.domain.access import Caller, Role
from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.errors import Invalid
from noonday.domain.outcome import Completed, Failed
from noonday.store import breakers
from noonday.store.pages import Mark
from tests.api.caller import Api, client_of
from tests.factories import NOON

SERVICE = {"type": "service", "service": "email", "endpoint": "/x"}


async def names(api: Api, q: str, **params: Any) -> list[str]:
    found = await api.get("/api/v2/jobs", params={"q": q, "order": "name", **params})
    assert found["total"] == len(found["jobs"])
    return [job["name"] for job in found["jobs"]]


async def test_it_searches_jobs(api: Api) -> None:
    await api.make(name="digest daily", tags=["nightly", "mail"], priority=1, target=SERVICE)
    await api.make(name="digest weekly", tags=["nightly", "old"], cron_expression="0 0 * * 1")
    await api.make(name="crawl: all", tags=[], schedule_type="manual")
    await api.call("POST", "/api/v2/jobs/digest weekly/pause")

    both = ["digest daily", "digest weekly"]
    assert await names(api, "tag:nightly") == both
    assert await names(api, "tag:nightly -tag:old") == ["digest daily"]
    assert await names(api, "DIGEST") == both
    assert await names(api, "weekly digest") == ["digest weekly"]
    assert await names(api, '"weekly digest"') == []
    assert await names(api, "name:digest*") == both
    assert await names(api, '"crawl: all"') == ["crawl: all"]
    assert await names(api, "status:paused,running") == ["digest weekly"]
    assert await names(api, "service:email") == ["digest daily"]
    assert await names(api, "", service="email") == ["digest daily"]
    assert await names(api, "priority:high") == ["digest daily"]
    assert await names(api, "next:<=1h") == ["digest daily"]
    assert await names(api, "next:none") == ["crawl: all", "digest weekly"]
    assert await names(api, "tag:nightly", status="paused") == ["digest weekly"]


async def test_it_says_which_word_is_wrong(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/api/v2/jobs", params={"q": "tag:x stauts:failed"})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "q"
    assert "'stauts:failed' at character 7" in error["detail"]


async def test_it_searches_executions_of_all_jobs_and_of_one(api: Api) -> None:
    for name, outcome in (
        ("digest", Failed(error="mail server is away", retryable=False)),
        ("crawl", Completed()),
    ):
        job = await api.make(name=name, tags=[name], max_retries=0, schedule_type="manual")
        await api.call("POST", f"/api/v2/jobs/{job['id']}/force-run")
        (run,) = await api.claim()
        api.clock.advance(seconds=40 if name == "crawl" else 1)
        await api.end(run, outcome)

    async def found(q: str, path: str = "/api/v2/executions") -> list[str]:
        page = await api.get(path, params={"q": q})
        return [one["status"] for one in page["executions"]]

    assert await found("") == ["completed", "failed"]
    assert await found("status:failed") == await found("job:dig*") == await found("tag:digest") == ["failed"]
    assert await found('"server is away"') == ["failed"]
    assert await found("took:>30s") == await found("-took:<30s") == ["completed"]
    assert await found("cause:manual by:anonymous") == ["completed", "failed"]
    assert await found("due:>1d") == []
    assert await found("status:completed", "/api/v2/jobs/digest/executions") == []
    assert await found("status:failed", "/api/v2/jobs/digest/executions") == ["failed"]
    assert (await api.get("/api/v2/executions?status=failed"))["total"] == 1
    wrong = await api.call("GET", "/api/v2/executions?q=next:<1h")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "q")


async def test_it_leads_from_page_to_page(api: Api) -> None:
    made = [(await api.make(name=f"job {n}", tags=["x, y"]))["name"] for n in range(7)]
    await api.make(name="another")
    seen, path = [], "/api/v2/jobs?q=tag:%22x,%20y%22&order=name&limit=3"
    for rest in (4, 1, 0):
        answer = await api.call("GET", path)
        page = answer.json()
        assert (page["total"], page["limit"], page["offset"]) == (7, 3, 0)
        seen += [job["name"] for job in page["jobs"]]
        assert (page["next_cursor"] is not None) == (rest > 0)
        if rest:
            link, relation = answer.headers["Link"].split("; ")
            assert relation == 'rel="next"'
            path = link.strip("<>")
    assert "Link" not in answer.headers
    assert seen == made


async def test_it_goes_on_in_the_order_of_the_cursor(sqlite_api: Api) -> None:
    for name in "cab":
        await sqlite_api.make(name=name)
    first = await sqlite_api.get("/api/v2/jobs?order=-name&limit=1")
    cursor = first["next_cursor"]
    following = await sqlite_api.get(f"/api/v2/jobs?limit=1&cursor={cursor}")
    assert [page["jobs"][0]["name"] for page in (first, following)] == ["c", "b"]
    other = await sqlite_api.call("GET", f"/api/v2/jobs?order=name&cursor={cursor}")
    assert (other.status_code, other.json()["errors"][0]["field"]) == (422, "cursor")
    both = await sqlite_api.call("GET", f"/api/v2/jobs?offset=1&cursor={cursor}")
    assert (both.status_code, both.json()["errors"][0]["field"]) == (422, "offset")


async def test_it_leads_through_the_history(api: Api) -> None:
    await api.make(name="digest", schedule_type="manual", overlap="allow")
    made = []
    for _ in range(5):
        run = await api.call("POST", "/api/v2/jobs/digest/force-run")
        assert run.status_code == 202, run.text
        made.append(run.json()["execution_id"])
        api.clock.advance(seconds=1)
    for path in ("/api/v2/executions", "/api/v2/jobs/digest/executions"):
        seen: list[str] = []
        link: str | None = f"{path}?limit=2"
        while link:
            answer = await api.call("GET", link)
            seen += [one["id"] for one in answer.json()["executions"]]
            link = answer.headers.get("Link", "").partition(";")[0].strip("<>")
        assert seen == made[::-1]
        # A cursor of one list is none of the other.
    strange = (await api.get("/api/v2/executions?limit=2"))["next_cursor"]
    assert (await api.call("GET", f"/api/v2/jobs/digest/executions?cursor={strange}")).status_code == 422


async def test_it_shows_a_service_its_own_alone(services: ApiServices, api: Api) -> None:
    await api.make(name="mine", target=SERVICE)
    await api.make(name="other", target=SERVICE | {"service": "billing"})
    for name in ("mine", "other"):
        assert (await api.call("POST", f"/api/v2/jobs/{name}/force-run")).status_code == 202

    here = Caller(name="email", role=Role.SERVICE, service="email")

    async def caller(_: Headers) -> Caller | None:
        return here

    async with client_of(replace(services, identify=caller)) as client:
        own = Api(client, api.db, api.clock)
        for q in ("", "service:billing,email", "-service:email"):
            assert await names(own, q) == ([] if q.startswith("-") else ["mine"])
        assert (await own.get("/api/v2/executions"))["total"] == 1
        assert (await own.get("/api/v2/executions?q=-job:mine"))["total"] == 0
        here = Caller(name="odd", role=Role.SERVICE)  # of no service at all
        assert await names(own, "") == []
        assert (await own.get("/api/v2/executions"))["total"] == 0


@pytest.mark.parametrize("key", [None, "", "name", 'Übersicht "x", 日', "2027-01-01T12:00:00+00:00"])
def test_it_reads_the_cursor_that_it_gave(key: str | None) -> None:
    mark = Mark(order="-name", key=key, id="00000000-0000-7000-8000-000000000001")
    assert mark_of(cursor_of(mark) or "") == mark


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!!",
        "é",
        "W10",  # []
        "WzEsMiwzXQ",  # [1,2,3]
        "WyJhIiwiYiJd",  # ["a","b"]
        "WyJuYW1lIiwiXHUwMDAwIiwiYSJd",  # a NUL
        "WyJuYW1lIiwiXHVkODAwIiwiYSJd",  # half of a character
        "eyJhIjoxLCJiIjoyLCJjIjozfQ",  # an object
        "W1tbW1tbW1tbW1tbW1tb",
        "/////w",
    ],
)
def test_it_refuses_a_cursor_that_is_none(cursor: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        mark_of(cursor)


async def test_it_searches_breakers(api: Api) -> None:
    heard = {"a.example.com": Heard(failures=1, error="503"), "b.test": Heard(failures=9, error="refused")}
    await api.db.write(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), NOON))

    async def found(q: str) -> list[str]:
        page = await api.get("/api/v2/breakers", params={"q": q})
        assert page["total"] == len(page["breakers"])
        return [one["domain"] for one in page["breakers"]]

    assert await found("state:open") == await found("trips:>0") == await found("test") == ["b.test"]
    assert await found("domain:*.Example.com") == await found("opened:none") == ["a.example.com"]
    assert await found("-error:refused failures:<5 updated:2027-01-01") == ["a.example.com"]
    assert (await api.call("GET", "/api/v2/breakers?q=tag:x")).status_code == 422
