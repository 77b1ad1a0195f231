"""`/`: the verdict, figures with their links, the hours around now, the short lists, the first steps."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape

import pytest
from sqlalchemy import insert

from noonday.domain.access import Role
from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.outcome import Completed, Failed
from noonday.ids import new_id
from noonday.store import breakers, jobs, pulse
from noonday.store.database import Database
from noonday.store.tables import executions
from tests.api.caller import StillClock
from tests.control.peers import an_instance, elect, enter
from tests.factories import NOON, a_job
from tests.web.signing_in import ClosedSite, closed_site
from tests.web.site import Site


def figures(text: str) -> dict[str, tuple[str, str]]:
    """The cards: word -> (number, address)."""
    found = re.findall(r'<a class="card figure[^"]*" href="([^"]+)"><b>([^<]+)</b> ([^<]+)<', text)
    return {word.strip(): (number, address) for address, number, word in found}


async def fail(site: Site, name: str) -> None:
    await site.call("POST", f"/api/v2/jobs/{name}/force-run")
    (run,) = await site.claim()
    await site.end(run, Failed(error=f"no answer for {name}", retryable=False))


async def past(db: Database, job_id: str, *, minutes: int, state: str, many: int = 1) -> None:
    at = NOON - timedelta(minutes=minutes)
    rows = [
        {
            "id": new_id(at),
            "job_id": job_id,
            "cause": "schedule",
            "scheduled_for": at + timedelta(seconds=number),
            "state": state,
            "created_at": at,
        }
        for number in range(many)
    ]
    await db.write(lambda conn: conn.execute(insert(executions), rows))


async def test_an_empty_scheduler_teaches_the_first_job(site: Site) -> None:
    text = await site.page("/")
    assert "Make your first job" in text
    assert "curl -s http://localhost:8060/api/v2/jobs" in text
    assert "NoondayClient(" in text
    assert "noonday jobs add hello --every 10s" in text
    assert "Six hours back" not in text
    assert "NOONDAY_KEY" not in text  # nobody need sign in


async def test_the_first_steps_make_the_same_job(site: Site) -> None:
    text = unescape(await site.page("/"))
    bodies = [json.loads(found) for found in re.findall(r"\{\n  \"name\".*?\n\}", text, re.DOTALL)]
    assert len(bodies) == 2  # with curl, and as a file
    assert bodies[0] == bodies[1]
    await site.make(**bodies[0])
    by_hand = await site.get("/api/v2/jobs/hello")
    await site.call("DELETE", "/api/v2/jobs/hello")
    await site.obeyed("/ui/new/example")
    own = {"id", "created_at", "updated_at", "next_run_at", "anchor_at"}
    made = await site.get("/api/v2/jobs/hello")
    assert {name: made[name] for name in made.keys() - own} == {
        name: by_hand[name] for name in by_hand.keys() - own
    }


async def test_all_is_well_with_a_leader_and_a_worker(site: Site) -> None:
    await enter(site.db, an_instance("one"))
    await elect(site.db, "one")
    await site.make(name="hourly", cron_expression="30 * * * *")
    text = await site.page("/")
    assert "All is well" in text
    assert "one leads" in text
    found = figures(text)
    assert found["due in the next hour"] == ("1", "/ui/jobs?q=next:%3C1h")
    assert found["instance"] == ("1", "/ui/workers")
    assert found["failing"][0] == "0"


async def test_it_says_what_is_wrong_with_links(any_site: Site) -> None:
    await any_site.make(name="broken")
    await any_site.make(name="sound")
    await fail(any_site, "broken")
    await any_site.call("POST", "/api/v2/jobs/sound/force-run")
    heard = {"feed.test": Heard(failures=5, error="refused")}
    await any_site.db.write(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), NOON))
    any_site.clock.advance(seconds=30)
    text = await any_site.page("/")
    assert "All is well" not in text
    assert "No instance is alive" in text
    found = figures(text)
    assert found["failing"] == ("1", "/ui/jobs?q=last_status:failed")
    assert found["late"][0] == "1"
    assert found["waiting"][0] == "1"
    assert found["breakers open"][0] == "1"
    assert "no answer for broken" in text
    assert "never succeeded" in text
    again = re.search(r'action="(/ui/jobs/[^"]+/run)"', text)
    assert again is not None
    assert (await any_site.send(again[1])).status_code == 303


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("one", {"heartbeat_at": NOON - timedelta(minutes=5)}, "1 instance is silent"),
        ("two", {"state": "draining"}, "No worker takes work"),
    ],
    ids=["silent", "draining"],
)
async def test_it_tells_of_instances_that_do_nothing(
    site: Site, name: str, change: dict[str, object], words: str
) -> None:
    await enter(site.db, an_instance(name, **change))
    assert words in await site.page("/")


async def test_what_runs_is_shown_with_its_instance(any_site: Site) -> None:
    await any_site.make(name="export")
    await any_site.call("POST", "/api/v2/jobs/export/force-run")
    (run,) = await any_site.claim()
    text = await any_site.page("/")
    assert figures(text)["running"][0] == "1"
    assert f'href="/ui/runs/{run.id}">export</a>' in text
    assert "on worker-1" in text
    assert f'action="/ui/runs/{run.id}/cancel"' in text
    await any_site.end(run, Completed())
    assert "Nothing runs at this moment" in await any_site.page("/")


async def test_the_pulse_counts_what_was_due_and_what_comes(any_site: Site) -> None:
    job = await any_site.make(name="every-ten", cron_expression="*/10 * * * *")
    await past(any_site.db, job["id"], minutes=5, state="completed")
    assert "1 run completed and 0 failed; 35 come in the next six" in await any_site.page("/")
    await past(any_site.db, job["id"], minutes=6, state="completed", many=2)
    await past(any_site.db, job["id"], minutes=65, state="failed")
    await past(any_site.db, job["id"], minutes=7 * 60, state="failed", many=9)  # too long ago
    text = await any_site.page("/")
    assert "3 runs completed and 1 failed; 35 come in the next six" in text
    assert "11:50 to 12:00 UTC: 3 completed" in text
    assert "10:50 to 11:00 UTC: 1 failed" in text
    assert "/ui/runs?q=due%3A%3E%3D2027-01-01T11%3A50Z+due%3A%3C2027-01-01T12%3A00Z" in text


async def test_its_links_find_what_it_counts(site: Site) -> None:
    job = await site.make(name="every-ten")
    await past(site.db, job["id"], minutes=5, state="completed", many=3)
    await past(site.db, job["id"], minutes=15, state="completed", many=2)
    q = "due:>=2027-01-01T11:50Z due:<2027-01-01T12:00Z"
    assert (await site.get("/api/v2/executions", params={"q": q}))["total"] == 3


async def test_a_lapse_counts_as_many_as_it_stands_for(any_site: Site) -> None:
    job = await any_site.make(name="lapsed")
    at = NOON - timedelta(minutes=5)
    row = {
        "id": new_id(at), "job_id": job["id"], "cause": "schedule", "scheduled_for": at,
        "state": "skipped", "skipped_count": 40, "created_at": at,
    }  # fmt: skip
    await any_site.db.write(lambda conn: conn.execute(insert(executions), [row]))
    assert "11:50 to 12:00 UTC: 40 skipped" in await any_site.page("/")


async def test_very_many_jobs_are_sampled_and_weighed(
    any_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [a_job(id=new_id(NOON), next_run_at=NOON + timedelta(hours=1)) for _ in range(40)]
    await any_site.db.write(lambda conn: jobs.add_many(conn, made))
    every = await any_site.db.read(lambda conn: pulse.ahead(conn, NOON + timedelta(hours=6)))
    assert (len(every.jobs), every.weight) == (40, 1)
    monkeypatch.setattr(pulse, "SAMPLE", 20)
    some = await any_site.db.read(lambda conn: pulse.ahead(conn, NOON + timedelta(hours=6)))
    assert 0 < len(some.jobs) < 40
    assert len(some.jobs) * some.weight == pytest.approx(40)


async def test_hours_are_those_of_the_readers_clock(site: Site) -> None:
    await site.make(name="hourly")
    site.client.cookies.set("noonday_zone", "Asia/Kathmandu")
    text = await site.page("/")
    assert "Asia/Kathmandu" in text
    assert re.findall(r'text-anchor="middle">(\d\d:\d\d)<', text) == [
        "12:05",
        "14:05",
        "16:05",
        "20:05",
        "22:05",
    ]


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    async with closed_site(sqlite_db, clock) as made:
        yield made


async def test_a_service_sees_its_own_jobs_alone(site: Site, closed: ClosedSite) -> None:
    for name in ("mine", "theirs"):
        await site.make(name=name, target={"type": "service", "service": name, "endpoint": "/run"})
        await fail(site, name)
    await closed.as_a(Role.OPERATOR)
    assert figures(await closed.page("/"))["failing"][0] == "2"
    await closed.as_a(Role.SERVICE, "mine")
    text = await closed.page("/")
    assert figures(text)["failing"][0] == "1"
    assert "no answer for mine" in text
    assert "theirs" not in text


async def test_the_first_steps_of_a_closed_instance_show_a_key(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    text = await closed.page("/")
    assert 'action="/ui/new/example"' not in text
    assert "To make one, sign in with a key that may edit them" in text
    assert (await closed.send("/ui/new/example")).status_code == 403
    await closed.as_a(Role.ADMIN)
    text = unescape(await closed.page("/"))
    assert '-H "X-API-Key: $NOONDAY_KEY"' in text
    assert 'key=os.environ["NOONDAY_KEY"]' in text
    assert (await closed.obeyed("/ui/new/example"))[0] == "/ui/jobs/hello"
