"""The timeline as a page and over the API: tracks, groups, lateness, overlaps and what is to come."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.access import Role
from noonday.store import tracks
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.api.people import bearer, guarded, key_for
from tests.factories import NOON
from tests.web.past import a_run
from tests.web.site import Site, browser_of, services_of

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
API = "/api/v2/timeline"


def track_of(page: str, name: str) -> str:
    """The track of a job, from its name to its end."""
    found = re.search(rf'<a class="track-name"[^>]*>{name}</a>.*?</li>', page, re.DOTALL)
    assert found, name
    return found[0]


def told(page: str, name: str) -> str:
    (words,) = re.findall(r'aria-label="[^":]*: ([^"]*)"', track_of(page, name))
    return str(words)


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


async def test_past_running_and_coming_runs_lie_on_one_track(any_site: Site) -> None:
    job = await any_site.make(name="feed")
    await a_run(any_site, job, NOON - 3 * HOUR)
    await a_run(any_site, job, NOON - 2 * HOUR, state="failed")
    await a_run(any_site, job, NOON - 10 * MINUTE, state="running")
    page = await any_site.page("/ui/timeline")
    assert told(page, "feed") == "1 completed, 1 failed, 12 planned, 1 running"
    track = track_of(page, "feed")
    for look in ("good", "bad", "running", "planned"):
        assert f'<path class="{look}" d="M' in track
    assert 'class="late"' not in track
    data = data_of(page)
    (marks,) = data["tracks"]
    assert [data["words"][mark[2]] for mark in marks[:3]] == ["completed", "failed", "running"]
    assert marks[0][0] == 9 * 3600
    assert marks[3][2:] == [], "a planned run is told in a few characters"


async def test_late_starts_and_overlaps_are_seen(any_site: Site) -> None:
    job = await any_site.make(name="slow", overlap="allow", max_instances=5)
    await a_run(any_site, job, NOON - 3 * HOUR, took=90 * MINUTE)
    await a_run(any_site, job, NOON - 2 * HOUR, late=5 * MINUTE)
    page = await any_site.page("/ui/timeline", params={"span": "12h"})
    assert "1 late, 1 overlapping" in told(page, "slow")
    assert '<path class="late" d="M' in track_of(page, "slow")
    assert "1 late" in track_of(page, "slow")
    assert "1 overlap" in track_of(page, "slow")


async def test_a_long_run_that_began_before_the_span_is_still_on_it(any_site: Site) -> None:
    job = await any_site.make(name="long")
    await a_run(any_site, job, NOON - 20 * HOUR, state="running")
    await a_run(any_site, job, NOON - 2 * HOUR, took=119 * MINUTE)
    await a_run(any_site, job, NOON - 4 * HOUR)
    page = await any_site.page("/ui/timeline", params={"span": "1h"})
    assert told(page, "long") == "1 completed, 1 running, 1 overlapping"


async def test_tracks_are_grouped_and_found(any_site: Site) -> None:
    await any_site.make(name="a", tags=["nightly"])
    await any_site.make(name="b", target={"type": "service", "service": "mailer", "endpoint": "/send"})
    page = await any_site.page("/ui/timeline")
    assert [re.sub(r"\s+<.*", "", one) for one in re.findall(r'<h2 class="group">(.*?)</h2>', page)] == [
        "mailer",
        "no service",
    ]
    tagged = await any_site.page("/ui/timeline", params={"group": "tag"})
    assert re.findall(r'<h2 class="group">(\w+)', tagged) == ["nightly", "no"]
    plain = await any_site.page("/ui/timeline", params={"group": "none", "q": "tag:nightly"})
    assert 'class="group"' not in plain
    assert re.findall(r'class="track-name"[^>]*>(\w+)<', plain) == ["a"]
    assert "1 of 1 jobs" in plain


async def test_pages_of_tracks_go_through_all_groups_once(any_site: Site) -> None:
    for number in range(7):
        await any_site.make(name=f"job-{number}", tags=[["red"], ["blue", "red"], []][number % 3])
    names: list[str] = []
    for offset in (0, 3, 6):
        page = await any_site.page("/ui/timeline", params={"group": "tag", "limit": 3, "offset": offset})
        names += re.findall(r'class="track-name"[^>]*>([\w-]+)<', page)
        assert "of 7 jobs" in page
    assert names == ["job-1", "job-4", "job-0", "job-3", "job-6", "job-2", "job-5"]


async def test_of_many_jobs_the_first_by_name_are_grouped(
    any_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracks, "GROUPED", 4)
    for number in range(7):
        await any_site.make(name=f"job-{number}", tags=[["red"], ["blue"], []][number % 3])
    page = await any_site.page("/ui/timeline", params={"group": "tag", "limit": 3})
    assert re.findall(r'class="track-name"[^>]*>([\w-]+)<', page) == ["job-1", "job-0", "job-3"]
    assert "3 of 7 jobs" in page
    assert "only the first 4 by name are in groups" in page
    assert re.search(r"red <span[^>]*>2\+ jobs", page)
    last = await any_site.page("/ui/timeline", params={"group": "tag", "limit": 3, "offset": 3})
    assert re.findall(r'class="track-name"[^>]*>([\w-]+)<', last) == ["job-2"]
    assert "next tracks" not in last
    told = (await any_site.call("GET", API, params={"group_by": "tag", "limit": 3})).json()
    assert (told["total"], told["partial"]) == (7, True)
    plain = (await any_site.call("GET", API, params={"group_by": "none", "limit": 3, "offset": 6})).json()
    assert [one["job_name"] for one in plain["tracks"]] == ["job-6"]
    assert (plain["total"], plain["partial"]) == (7, False)


async def test_zoom_and_moving_keep_the_rest_of_the_address(site: Site) -> None:
    await site.make(name="a")
    page = await site.page("/ui/timeline", params={"q": "a", "group": "tag"})
    assert 'href="/ui/timeline?q=a&amp;span=7d&amp;group=tag"' in page
    assert 'href="/ui/timeline?q=a&amp;at=2027-01-02T00%3A00%3A00Z&amp;group=tag"' in page
    assert "data-live" in page
    moved = await site.page("/ui/timeline", params={"at": "2027-01-10T12:00:00Z"})
    assert 'datetime="2027-01-10T00:00:00+00:00"' in moved
    assert told(moved, "a") == "25 planned"
    assert "data-live" not in moved, "what somebody looks at does not run away"


async def test_quiet_tracks_can_be_left_out(site: Site) -> None:
    await site.make(name="quiet", schedule_type="manual")
    await site.make(name="loud")
    page = await site.page("/ui/timeline", params={"busy": "on"})
    assert re.findall(r'class="track-name"[^>]*>(\w+)<', page) == ["loud"]
    assert "Nothing runs in this time" in await site.page("/ui/timeline?busy=on&at=2026-01-01")


async def test_a_wrong_search_and_no_jobs_are_told(site: Site) -> None:
    assert "There are no jobs yet" in await site.page("/ui/timeline")
    page = await site.page("/ui/timeline", 422, params={"q": "colour:red"})
    assert 'aria-invalid="true"' in page


async def test_a_very_fast_job_is_drawn_as_few_marks(site: Site) -> None:
    await site.make(name="fast", cron_expression="* * * * *")
    page = await site.page("/ui/timeline", params={"span": "7d"})
    (marks,) = data_of(page)["tracks"]
    assert len(marks) < 250
    assert sum(mark[4] if len(mark) > 4 else 1 for mark in marks) == pytest.approx(3.5 * 24 * 60, rel=0.05)


async def test_hostile_names_stay_text(site: Site) -> None:
    await site.make(name="<script><b>x", tags=["</script><i>"])
    page = await site.page("/ui/timeline?group=tag")
    assert "<b>x" not in page
    assert "<i>" not in page
    assert "<script><b" not in page


async def test_the_api_tells_the_same(any_site: Site) -> None:
    job = await any_site.make(name="feed", tags=["news"])
    run = await a_run(any_site, job, NOON - 2 * HOUR, late=3 * MINUTE)
    seen = await any_site.get(
        API, params={"group_by": "tag", "from": "2027-01-01T09:00:00Z", "to": "2027-01-01T15:00:00Z"}
    )
    (track,) = seen["tracks"]
    assert (track["job_name"], track["group"], track["late"]) == ("feed", "news", 1)
    assert track["runs"] == {"completed": 1, "planned": 3}
    assert track["marks"][0] == {
        "execution_id": run.id,
        "state": "completed",
        "due": "2027-01-01T10:00:00Z",
        "start": "2027-01-01T10:03:00Z",
        "end": "2027-01-01T10:04:00Z",
        "late_seconds": 180.0,
        "count": 1,
        "row": 0,
    }
    assert (seen["total"], seen["groups"], seen["partial"]) == (1, {"news": 1}, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2027-01-02T00:00:00Z&to=2027-01-01T00:00:00Z", "to"),
        ("from=2027-01-01T00:00:00Z&to=2027-01-09T00:00:00Z", "to"),
        ("from=2029-01-01T00:00:00Z", "from"),
        ("limit=201", "limit"),
        ("q=colour:red", "q"),
    ],
)
async def test_the_api_refuses_what_is_too_much(site: Site, query: str, field: str) -> None:
    answer = await site.call("GET", f"{API}?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"].startswith(field)


async def test_a_service_sees_its_own_jobs_alone(sqlite_db: Database, clock: StillClock) -> None:
    services, keys = guarded(services_of(sqlite_db, clock))
    async with browser_of(services) as client:
        admin = bearer(await key_for(keys, Role.ADMIN))
        own = bearer(await key_for(keys, Role.SERVICE, "mailer"))
        for name, target in (
            ("hers", {"type": "service", "service": "mailer", "endpoint": "/send"}),
            ("foreign", {"type": "fetch", "url": "https://example.com/"}),
        ):
            body = {
                "name": name,
                "target": target,
                "cron_expression": "0 * * * *",
                "calendar": {"holidays": "DE"},
            }
            assert (await client.post("/api/v2/jobs", json=body, headers=admin)).status_code == 201
        for path in ("/ui/timeline", "/ui/calendar", "/ui/load/hour?at=2027-01-02T15:00:00Z", API):
            page = (await client.get(path, headers=own)).text
            assert "hers" in page, path
            assert "foreign" not in page, path
        assert (await client.get("/api/v2/load", headers=own)).json()["jobs"] == 1
        assert (await client.get("/ui/load/rebalance", headers=own)).status_code == 403
