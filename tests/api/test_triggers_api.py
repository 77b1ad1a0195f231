"""`/api/v2/triggers`: who waits for what, registering and removing, trying a path, what was delivered."""

from __future__ import annotations

from noonday.store import audit
from tests.api.caller import Api


async def register(api: Api, kind: str, **body: str) -> dict[str, object]:
    answer = await api.call("POST", f"/api/v2/triggers/{kind}", body)
    assert answer.status_code == 201, answer.text
    made: dict[str, object] = answer.json()
    return made


async def test_a_job_is_registered_listed_and_removed(api: Api) -> None:
    job = await api.make(name="crawl")
    named = {"job_id": job["id"], "job_name": "crawl", "enabled": True, "paused": False}
    made = await register(api, "webhooks", job_id=job["id"], pattern="sources//*/crawl/")
    assert made == named | {"pattern": "/sources/*/crawl"}
    made = await register(api, "channels", job_id="crawl", channel="content:*")
    assert made == named | {"channel": "content:*"}
    counts = {"webhooks_count": 1, "channels_count": 1, "pubsub_enabled": False, "webhook_enabled": True}
    assert await api.get("/api/v2/triggers/status") == {"status": "active", "webhook_signed": False} | counts
    page = await api.get("/api/v2/triggers/webhooks")
    assert page == {
        "webhooks": [named | {"pattern": "/sources/*/crawl"}],
        "total": 1,
        "limit": 50,
        "offset": 0,
    }
    page = await api.get("/api/v2/triggers/channels", params={"limit": 1})
    assert page == {"channels": [named | {"channel": "content:*"}], "total": 1, "limit": 1, "offset": 0}
    shown = await api.get("/api/v2/jobs/crawl")
    assert (shown["trigger_webhook"], shown["trigger_channel"]) == ("/sources/*/crawl", "content:*")
    assert shown["cron_expression"] == "0 * * * *"

    answer = await api.call("DELETE", "/api/v2/triggers/jobs/crawl")
    assert answer.status_code == 200
    assert answer.json() == {
        "job_id": job["id"],
        "job_name": "crawl",
        "webhook": "/sources/*/crawl",
        "channel": "content:*",
    }
    assert (await api.get("/api/v2/triggers/webhooks"))["total"] == 0
    assert (await api.get("/api/v2/triggers/channels"))["total"] == 0
    shown = await api.get("/api/v2/jobs/crawl")
    assert (shown["trigger_webhook"], shown["trigger_channel"]) == (None, None)
    assert shown["next_run_at"] is not None
    trail = await api.db.read(lambda conn: audit.page(conn, job["id"]))
    assert sorted(entry.action for entry in trail.items) == ["create", "update", "update", "update"]
    assert {entry.actor for entry in trail.items} == {"anonymous"}
    assert (await api.call("DELETE", "/api/v2/triggers/jobs/crawl")).json()["webhook"] is None


async def test_the_lists_come_in_pages_in_a_fixed_order(api: Api) -> None:
    for name in ("c", "a", "b"):
        await api.make(name=name, trigger_webhook=f"/{name}")
    await api.make(name="none")
    seen = []
    for offset in range(4):
        page = await api.get("/api/v2/triggers/webhooks", params={"limit": 1, "offset": offset})
        assert page["total"] == 3
        seen += [found["job_name"] for found in page["webhooks"]]
    assert seen == ["a", "b", "c"]
    for params in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"page": 2}):
        answer = await api.call("GET", "/api/v2/triggers/webhooks", params=params)
        assert answer.status_code == 422


async def test_it_refuses_what_cannot_be(sqlite_api: Api) -> None:
    job = await sqlite_api.make(name="crawl")
    bad: list[tuple[str, dict[str, object], int]] = [
        ("webhooks", {"job_id": "crawl"}, 422),
        ("webhooks", {"pattern": "/a"}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": ""}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/a*"}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/a/../b"}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/a\nb"}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/" + "a" * 512}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/a" * 65}, 422),
        ("webhooks", {"job_id": "crawl", "pattern": "/a", "more": 1}, 422),
        ("webhooks", {"job_id": "nobody", "pattern": "/a"}, 404),
        ("channels", {"job_id": "crawl", "channel": ""}, 422),
        ("channels", {"job_id": "crawl", "channel": "a\x01"}, 422),
        ("channels", {"job_id": "crawl", "channel": "a" * 201}, 422),
        ("channels", {"job_id": "nobody", "channel": "a"}, 404),
        ("test", {}, 422),
        ("test", {"path": "/a/../b"}, 422),
        ("test", {"path": "/a", "more": 1}, 422),
    ]
    for kind, body, status in bad:
        answer = await sqlite_api.call("POST", f"/api/v2/triggers/{kind}", body)
        assert answer.status_code == status, (kind, body, answer.text)
    words = (await sqlite_api.call("POST", "/api/v2/triggers/webhooks", bad[3][1])).json()["error"]
    assert words == "pattern: '/a*' has a * within 'a*'; * and ** stand for whole segments"
    assert (await sqlite_api.call("DELETE", "/api/v2/triggers/jobs/nobody")).status_code == 404
    await sqlite_api.call("POST", f"/api/v2/jobs/{job['id']}/cancel")
    for kind, what in (("webhooks", {"pattern": "/a"}), ("channels", {"channel": "a"})):
        answer = await sqlite_api.call("POST", f"/api/v2/triggers/{kind}", {"job_id": "crawl"} | what)
        assert answer.status_code == 409
    put = await sqlite_api.call("PUT", "/api/v2/jobs/crawl", {"trigger_webhook": "/a**"})
    assert put.status_code == 422


async def test_a_path_can_be_tried_without_running_anything(sqlite_api: Api) -> None:
    await sqlite_api.make(name="one", trigger_webhook="/sources/*/crawl")
    held = await sqlite_api.make(name="held", trigger_webhook="/sources/**")
    await sqlite_api.call("POST", f"/api/v2/jobs/{held['id']}/pause")
    await sqlite_api.make(name="off", trigger_webhook="/**", schedule_enabled=False)
    await sqlite_api.make(name="other", trigger_webhook="/other")
    answer = await sqlite_api.call("POST", "/api/v2/triggers/test", {"path": "sources/42/crawl"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["path"], shown["matched"]) == ("/sources/42/crawl", 2)
    assert [(job["job_name"], job["pattern"], job["would"]) for job in shown["jobs"]] == [
        ("held", "/sources/**", "skip"),
        ("off", "/**", "nothing"),
        ("one", "/sources/*/crawl", "run"),
    ]
    assert (await sqlite_api.get("/api/v2/jobs/one/executions"))["total"] == 0
    assert (await sqlite_api.get("/api/v2/triggers/deliveries"))["total"] == 0


async def test_deliveries_are_listed_newest_first(api: Api) -> None:
    await api.make(name="a", trigger_webhook="/a")
    for path in ("/a", "/b"):
        api.clock.advance(seconds=1)
        await api.call("POST", f"/api/v2/triggers/webhook{path}")
    page = await api.get("/api/v2/triggers/deliveries", params={"limit": 1})
    assert (page["total"], page["limit"], page["offset"]) == (2, 1, 0)
    assert [(each["path"], each["matched"]) for each in page["deliveries"]] == [("/b", 0)]
    assert page["deliveries"][0]["received_at"] == "2027-01-01T12:00:02Z"
    page = await api.get("/api/v2/triggers/deliveries", params={"offset": 1})
    assert [run["job_name"] for each in page["deliveries"] for run in each["executions"]] == ["a"]


async def test_an_odd_path_is_only_a_path(api: Api) -> None:
    odd = ["'; DROP TABLE jobs; --", '{"a": [1]}', "\\x00", "%s%n{0}", "ünï©ødé 🙂", "<script>", "$(id)", "*"]
    for number, name in enumerate(odd):
        job = await api.make(name=f"odd-{number}")
        if name != "*":
            await register(api, "webhooks", job_id=job["id"], pattern=f"/odd/{name}")
        answer = await api.call("POST", "/api/v2/triggers/webhook", {"path": f"/odd/{name}"})
        assert answer.json()["matched"] == (name != "*"), name
        assert answer.json()["path"] == f"/odd/{name}"
    page = await api.get("/api/v2/triggers/deliveries")
    assert {found["path"] for found in page["deliveries"]} == {f"/odd/{name}" for name in odd}
