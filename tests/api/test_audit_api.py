"""Who changed what, a job as it was, and back to that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import text

from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import Caller, Role
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.factories import NOON

AUDIT = "/api/v2/audit"


async def trail(api: Api, job: str, **query: Any) -> list[dict[str, Any]]:
    """Of one job, the oldest first."""
    found = await api.get(f"/api/v2/jobs/{job}/audit", params=query)
    return sorted(found["entries"], key=lambda entry: (entry["revision"] or 0, entry["at"]))


async def put(api: Api, job: str, **body: Any) -> dict[str, Any]:
    answer = await api.call("PUT", f"/api/v2/jobs/{job}", body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def go_back(api: Api, job: str, revision: int, status: int = 200, **more: Any) -> Any:
    answer = await api.call("POST", f"/api/v2/jobs/{job}/revert", {"revision": revision}, **more)
    assert answer.status_code == status, answer.text
    return answer.json()


class TestTheTrail:
    async def test_each_change_says_who_what_and_how_it_was(self, api: Api) -> None:
        job = await api.make(name="nightly", description="one")
        await put(api, "nightly", description="two")
        await api.call("POST", "/api/v2/jobs/nightly/pause")
        created, updated, paused = await trail(api, "nightly")
        assert (created["action"], created["before"], created["revision"]) == ("create", None, 1)
        assert created["after"]["description"] == "one"
        assert (updated["before"]["description"], updated["after"]["description"]) == ("one", "two")
        assert paused | {"before": 0, "after": 0, "id": 0} == {
            "id": 0,
            "at": "2027-01-01T12:00:00Z",
            "actor": "anonymous",
            "action": "pause",
            "kind": "job",
            "subject_id": job["id"],
            "revision": 3,
            "before": 0,
            "after": 0,
        }

    async def test_filters(self, api: Api) -> None:
        await api.make(name="one")
        api.clock.advance(hours=1)
        await api.make(name="two")
        await api.call("POST", "/api/v2/jobs/two/pause")
        for query, count in (
            ({}, 3),
            ({"job": "two"}, 2),
            ({"job": "two", "action": "pause"}, 1),
            ({"actor": "anonymous"}, 3),
            ({"actor": "ada"}, 0),
            ({"kind": "job"}, 3),
            ({"kind": "key"}, 0),
            ({"since": "2027-01-01T12:30:00Z"}, 2),
            ({"until": "2027-01-01T12:30:00Z"}, 1),
            ({"since": "2027-01-01T13:00:00Z", "until": "2027-01-01T13:00:00Z"}, 0),
            ({"q": "action:pause,create job:t*"}, 2),
            ({"q": "-action:pause"}, 2),
        ):
            found = await api.get(AUDIT, params=query)
            assert (found["total"], len(found["entries"])) == (count, count), query

    async def test_pages_follow_each_other(self, api: Api) -> None:
        for number in range(7):
            api.clock.advance(seconds=1)
            await api.make(name=f"job-{number}")
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 3}
        while True:
            page = await api.get(AUDIT, params=query)
            seen += [entry["after"]["name"] for entry in page["entries"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == [f"job-{number}" for number in reversed(range(7))]
        assert (await api.get(AUDIT, params={"limit": 2, "offset": 5}))["entries"][0]["after"][
            "name"
        ] == "job-1"

    async def test_a_deleted_job_still_has_its_trail(self, sqlite_api: Api) -> None:
        job = await sqlite_api.make(name="nightly")
        await sqlite_api.call("DELETE", "/api/v2/jobs/nightly")
        assert (await sqlite_api.get(AUDIT, params={"job": job["id"]}))["total"] == 2
        assert len(await trail(sqlite_api, job["id"])) == 2
        assert (await sqlite_api.client.get(AUDIT, params={"job": "nightly"})).status_code == 404

    async def test_what_is_no_question_is_refused(self, sqlite_api: Api) -> None:
        for query in (
            {"since": "yesterday"},
            {"cursor": "x"},
            {"limit": "1000"},
            {"what": "ever"},
            {"q": "nonsense:1"},
            {"actor": "x" * 201},
        ):
            answer = await sqlite_api.client.get(AUDIT, params=query)
            assert answer.status_code == 422, query
            assert answer.json()["errors"]

    async def test_secrets_are_in_no_answer(self, sqlite_api: Api) -> None:
        target = {"type": "http", "url": "https://a.test", "headers": {"Authorization": "Bearer geheim"}}
        job = await sqlite_api.make(name="nightly", target=target, config={"password": "geheim"})
        target["headers"]["Authorization"] = "Bearer strenggeheim"  # type: ignore[index]
        await put(sqlite_api, "nightly", target=target)
        for path in (AUDIT, f"/api/v2/jobs/{job['id']}/audit", f"/api/v2/jobs/{job['id']}/revisions/1"):
            assert "geheim" not in (await sqlite_api.client.get(path)).text

    async def test_an_operator_sees_the_trail_of_a_job_but_not_all_of_it(
        self, sqlite_db: Database, clock: StillClock
    ) -> None:
        status = LocalStatus(instance_id="instance-1", started_at=NOON)
        services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status)

        async def identify(_: object) -> Caller:
            return Caller(name="ada", role=Role.OPERATOR)

        async with client_of(replace(services, identify=identify)) as client:
            await Api(client, services.db, clock).make(name="nightly")
            assert (await client.get(AUDIT)).status_code == 403
            found = (await client.get("/api/v2/jobs/nightly/audit")).json()
            assert found["entries"][0]["actor"] == "ada"
            await client.put("/api/v2/jobs/nightly", json={"description": "new"})
            assert (await client.post("/api/v2/jobs/nightly/revert", json={"revision": 1})).status_code == 200


class TestRevisions:
    async def test_a_job_is_shown_as_it_was(self, api: Api) -> None:
        job = await api.make(name="nightly", description="one", cron_expression="0 1 * * *")
        await put(api, "nightly", description="two", tags=["a"])
        await put(api, "nightly", cron_expression="0 2 * * *", name="renamed")
        await api.call("POST", "/api/v2/jobs/renamed/pause")
        found = await api.get("/api/v2/jobs/renamed/revisions/2")
        assert (found["revision"], found["current"]) == (2, 4)
        assert found["made"]["action"] == "update"
        shown = found["job"]
        assert (shown["name"], shown["description"], shown["tags"]) == ("nightly", "two", ["a"])
        assert (shown["cron_expression"], shown["is_paused"], shown["revision"]) == ("0 1 * * *", False, 2)
        first = (await api.get("/api/v2/jobs/renamed/revisions/1"))["job"]
        same = {"next_run_at", "next_runs", "updated_at", "status", "last_run_at", "last_status"}
        assert {k: v for k, v in first.items() if k not in same} == {
            k: v for k, v in job.items() if k not in same
        }

    async def test_todays_is_one_of_them(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly")
        found = await sqlite_api.get("/api/v2/jobs/nightly/revisions/1")
        assert (found["current"], found["made"]["action"]) == (1, "create")

    async def test_one_that_never_was(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly")
        for number, status in (("2", 404), ("0", 422), (str(2**31), 422), ("x", 422)):
            answer = await sqlite_api.client.get(f"/api/v2/jobs/nightly/revisions/{number}")
            assert answer.status_code == status, number

    async def test_behind_a_change_by_plain_sql_nothing_is_made_up(self, api: Api) -> None:
        await api.make(name="nightly", description="one")
        change = text("UPDATE jobs SET description = 'by hand'")
        await api.db.write(lambda conn: conn.execute(change))
        await put(api, "nightly", priority=1)
        answer = await api.client.get("/api/v2/jobs/nightly/revisions/1")
        assert answer.status_code == 404
        assert "plain SQL" in answer.json()["detail"]
        assert (await api.get("/api/v2/jobs/nightly/revisions/2"))["job"]["description"] == "by hand"


class TestGoingBack:
    async def test_it_is_a_new_revision_with_the_old_definition(self, api: Api) -> None:
        job = await api.make(name="nightly", description="one", cron_expression="0 1 * * *", tags=["a"])
        await put(api, "nightly", description="two", cron_expression="0 2 * * *")
        await put(api, "nightly", tags=[], priority=1)
        made = await go_back(api, "nightly", 1)
        assert (made["reverted_to"], made["kept_secrets"]) == (1, [])
        same = {"revision", "updated_at"}
        now = await api.get("/api/v2/jobs/nightly")
        assert {k: v for k, v in now.items() if k not in same} == {
            k: v for k, v in job.items() if k not in same
        }
        assert now["revision"] == 4
        last = (await trail(api, "nightly"))[-1]
        assert (last["action"], last["actor"], last["revision"]) == ("revert", "anonymous", 4)
        assert {"lane", "tags", "timing", "description"} <= last["after"].keys()

    async def test_and_that_can_be_taken_back_too(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly", description="one")
        await put(sqlite_api, "nightly", description="two")
        await go_back(sqlite_api, "nightly", 1)
        await go_back(sqlite_api, "nightly", 2)
        assert (await sqlite_api.get("/api/v2/jobs/nightly"))["description"] == "two"

    async def test_a_pause_stays_a_pause(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly", description="one")
        await put(sqlite_api, "nightly", description="two")
        await sqlite_api.call("POST", "/api/v2/jobs/nightly/pause")
        made = await go_back(sqlite_api, "nightly", 1)
        assert (made["job"]["description"], made["job"]["is_paused"]) == ("one", True)

    async def test_to_what_it_is_changes_nothing(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly")
        assert (await go_back(sqlite_api, "nightly", 1))["job"]["revision"] == 1

    async def test_a_secret_of_today_stays_and_is_named(self, api: Api) -> None:
        target = {"type": "http", "url": "https://a.test/1", "headers": {"Authorization": "Bearer old"}}
        await api.make(name="nightly", target=target)
        new = target | {"url": "https://a.test/2", "headers": {"Authorization": "Bearer new"}}
        await put(api, "nightly", target=new)
        made = await go_back(api, "nightly", 1)
        assert made["kept_secrets"] == ["target.headers.Authorization"]
        stored = (await api.stored("nightly")).target
        assert (stored.url, stored.headers) == ("https://a.test/1", {"Authorization": "Bearer new"})

    async def test_a_secret_that_is_gone_is_not_made_up(self, sqlite_api: Api) -> None:
        target = {"type": "http", "url": "https://a.test/1", "headers": {"Authorization": "Bearer old"}}
        await sqlite_api.make(name="nightly", target=target)
        await put(sqlite_api, "nightly", target={"type": "http", "url": "https://a.test/2"})
        problem = await go_back(sqlite_api, "nightly", 1, 409)
        assert "target.headers.Authorization" in problem["detail"]
        assert (await sqlite_api.stored("nightly")).target.url == "https://a.test/2"

    async def test_a_rehearsal_changes_nothing(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly", description="one")
        await put(sqlite_api, "nightly", description="two")
        shown = await go_back(sqlite_api, "nightly", 1, params={"dry_run": "true"})
        assert shown["dry_run"] is True
        assert shown["changes"] == [{"field": "description", "before": "two", "after": "one"}]
        assert shown["kept_secrets"] == []
        assert (await sqlite_api.get("/api/v2/jobs/nightly"))["revision"] == 2

    async def test_with_an_outdated_etag_it_is_refused(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly")
        await put(sqlite_api, "nightly", description="two")
        await go_back(sqlite_api, "nightly", 1, 412, headers={"If-Match": '"1"'})
        await go_back(sqlite_api, "nightly", 1, 200, headers={"If-Match": '"2"'})

    async def test_a_job_it_depended_on_must_still_be_there(self, sqlite_api: Api) -> None:
        parent = await sqlite_api.make(name="parent")
        await sqlite_api.make(name="child", depends_on=[parent["id"]])
        await put(sqlite_api, "child", depends_on=[])
        await sqlite_api.call("DELETE", "/api/v2/jobs/parent")
        await go_back(sqlite_api, "child", 1, 422)

    async def test_a_wrong_body_is_refused(self, sqlite_api: Api) -> None:
        await sqlite_api.make(name="nightly")
        bodies: list[Any] = [{}, {"revision": 0}, {"revision": "one"}, {"revision": 1, "more": 1}]
        for body in bodies:
            answer = await sqlite_api.call("POST", "/api/v2/jobs/nightly/revert", body)
            assert answer.status_code == 422, body

    async def test_moved_to_the_other_engine_and_back(self, api: Api) -> None:
        await api.make(name="nightly", description="one", scheduler_version=1)
        await api.call("POST", "/api/v2/scheduler/engine/move", {"to": 2, "jobs": ["nightly"]})
        await put(api, "nightly", description="two")
        made = await go_back(api, "nightly", 1)
        assert (made["job"]["scheduler_version"], made["job"]["description"]) == (1, "one")
