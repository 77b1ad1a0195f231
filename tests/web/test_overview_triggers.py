"""`/ui/triggers`: who waits for what, registering and removing, trying a path and calling it, deliveries."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noonday.domain.access import Role
from noonday.domain.job import Trigger
from noonday.store import jobs
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.factories import a_job
from tests.web.signing_in import ClosedSite, closed_site
from tests.web.site import Site

HOME = "/ui/triggers"


async def test_nothing_waits_yet(site: Site) -> None:
    text = await site.page(HOME)
    for words in ("No job waits for a call", "No job waits for a message", "No call has come yet"):
        assert words in text


async def test_a_job_is_registered_and_removed(site: Site) -> None:
    await site.make(name="crawl")
    form = {"job": "crawl", "kind": "webhook", "pattern": "sources/*/crawl/"}
    where, note = await site.obeyed(f"{HOME}/register", form)
    assert (where, note) == (HOME, "Calls of /sources/*/crawl start crawl.")
    await site.obeyed(f"{HOME}/register", {"job": "crawl", "kind": "channel", "pattern": "content:*"})
    text = await site.page(HOME)
    assert "<code>/sources/*/crawl</code>" in text
    assert "<code>content:*</code>" in text

    job = await site.stored("crawl")
    await site.obeyed(f"{HOME}/jobs/{job.id}/remove", {"kind": "webhook"})
    left = (await site.stored("crawl")).trigger
    assert (left.webhook, left.channel) == (None, "content:*")
    await site.obeyed(f"{HOME}/jobs/{job.id}/remove", {"kind": "channel"})
    assert (await site.stored("crawl")).trigger.channel is None


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"job": "nobody", "pattern": "/a"}, "job-wrong", "there is no job"),
        ({"job": "crawl", "pattern": "/a-*"}, "pattern-wrong", "stand for whole segments"),
    ],
    ids=["job", "pattern"],
)
async def test_what_is_wrong_is_said_at_its_field(
    site: Site, form: dict[str, str], field: str, words: str
) -> None:
    await site.make(name="crawl")
    answer = await site.send(f"{HOME}/register", form)
    assert answer.status_code == 422
    assert f'id="{field}"' in answer.text
    assert words in answer.text
    assert f'value="{form["pattern"]}"' in answer.text


async def test_a_path_is_tried_without_running_anything(site: Site) -> None:
    await site.make(name="crawl", trigger_webhook="/sources/*")
    await site.make(name="held", trigger_webhook="/sources/**")
    await site.call("POST", "/api/v2/jobs/held/pause")
    text = await site.page(HOME, params={"path": "sources//42/"})
    assert "A call of <code>/sources/42</code> reaches 2 jobs" in text
    assert "is recorded as skipped" in text
    assert "No job waits for <code>/else</code>" in await site.page(HOME, params={"path": "/else"})
    assert "must not hold" in await site.page(HOME, 422, params={"path": "/a/../b"})
    assert (await site.get("/api/v2/executions"))["total"] == 0


async def test_a_path_is_called_by_hand(site: Site) -> None:
    await site.make(name="crawl", trigger_webhook="/sources/*", config={"depth": 1})
    where, note = await site.obeyed(f"{HOME}/fire", {"path": "/sources/42", "data": '{"article": 7}'})
    assert (where, note) == (f"{HOME}#deliveries", "/sources/42 was called. 1 job started.")
    (run,) = (await site.get("/api/v2/executions"))["executions"]
    assert run["config"] == {"depth": 1, "article": 7, "webhook_path": "/sources/42"}
    text = await site.page(HOME)
    assert f'<a href="/ui/runs/{run["id"]}">crawl</a>' in text
    assert (await site.send(f"{HOME}/fire", {"path": "/.."})).status_code == 422


async def test_long_lists_come_in_pages(site: Site) -> None:
    made = [a_job(trigger=Trigger(webhook=f"/{number:02}")) for number in range(53)]
    await site.db.write(lambda conn: jobs.add_many(conn, made))
    assert 'href="/ui/triggers?webhooks=50"' in await site.page(HOME)
    last = await site.page(HOME, params={"webhooks": "50"})
    assert "<code>/52</code>" in last
    assert "<code>/49</code>" not in last


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    async with closed_site(sqlite_db, clock) as made:
        yield made


async def test_a_service_calls_its_own_jobs_alone_and_sees_no_deliveries(
    site: Site, closed: ClosedSite
) -> None:
    for name in ("mine", "theirs"):
        target = {"type": "service", "service": name, "endpoint": "/run"}
        await site.make(name=f"of {name}", target=target, schedule_type="event", trigger_webhook="/go")
    await closed.as_a(Role.SERVICE, "mine")
    text = await closed.page(HOME, params={"path": "/go"})
    assert "of mine" in text
    assert "of theirs" not in text
    assert "Deliveries" not in text
    assert "Let something start a job" not in text
    await closed.obeyed(f"{HOME}/fire", {"path": "/go"})
    found = (await site.get("/api/v2/executions"))["executions"]
    assert [run["job_id"] for run in found] == [(await site.stored("of mine")).id]


async def test_a_viewer_changes_nothing(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    text = await closed.page(HOME, params={"path": "/go"})
    assert "Call it now" not in text
    assert "Register" not in text
    for action in ("register", "fire", "jobs/crawl/remove"):
        assert (await closed.send(f"{HOME}/{action}")).status_code == 403
