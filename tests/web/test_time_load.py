"""The load as a page and over the API: hours that were, hours to come, quiet slots, and spreading."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest

from tests.factories import NOON
from tests.web.past import a_run
from tests.web.site import Site

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
CELL = re.compile(r'<a class="(l\d[^"]*)" href="([^"]*)" title="([^"]*)">([^<]*)<')


def cells(page: str, word: str = "") -> dict[str, tuple[str, str, str]]:
    """Look, address and text of each field, by its day and hour."""
    found = {}
    for look, address, title, text in CELL.findall(page):
        if title.endswith(" planned") == (word == "planned"):
            found[title.split(":00 ")[0]] = (look, html.unescape(address), text)
    return found


async def test_past_hours_are_counted_and_lead_to_their_runs(any_site: Site) -> None:
    job = await any_site.make(name="feed", schedule_type="manual")
    for minute in (0, 20, 59):
        await a_run(any_site, job, NOON - 5 * HOUR + minute * MINUTE, took=20 * MINUTE)
    await a_run(any_site, job, NOON - 30 * HOUR, state="failed")
    await a_run(any_site, job, NOON - 8 * 24 * HOUR)
    page = await any_site.page("/ui/load")
    seen = cells(page)
    assert seen["2027-01-01 07"][2] == "3"
    assert seen["2026-12-31 06"][2] == "1"
    assert sum(text != "·" for _, _, text in seen.values()) == 2
    assert seen["2027-01-01 07"][1] == (
        "/ui/runs?q=due%3A%3E%3D2027-01-01T07%3A00%3A00Z%20due%3A%3C2027-01-01T08%3A00%3A00Z"
    )
    assert "4 runs, 1 failed" in page
    busy = cells(await any_site.page("/ui/load?show=busy"))
    assert busy["2027-01-01 07"][2] == "1"
    failed = cells(await any_site.page("/ui/load?show=failed"))
    assert [text for _, _, text in failed.values() if text != "·"] == ["1"]
    assert "status%3Afailed" in failed["2026-12-31 06"][1]


async def test_what_is_to_come_is_counted_looks_different_and_leads_to_its_hour(any_site: Site) -> None:
    for number in range(3):
        await any_site.make(name=f"hourly-{number}", cron_expression=f"{number} * * * *")
    await any_site.make(name="daily", cron_expression="30 7 * * *")
    page = await any_site.page("/ui/load")
    seen = cells(page, "planned")
    assert seen["2027-01-02 07"][2] == "4"
    assert seen["2027-01-02 08"][2] == "3"
    assert len(seen) == 12 + 6 * 24
    assert seen["2027-01-02 07"][1] == "/ui/load/hour?at=2027-01-02T07:00:00Z"
    assert '<table class="heat planned">' in page
    hour = await any_site.page(seen["2027-01-02 07"][1])
    assert re.findall(r'<td><a href="/ui/jobs/[^"]*">([^<]*)', hour) == [
        "hourly-0",
        "hourly-1",
        "hourly-2",
        "daily",
    ]
    assert re.findall(r'<rect x="([\d.]+)" width="0.8"', hour) == ["0.1", "1.1", "2.1", "30.1"]


async def planned(site: Site) -> tuple[str, ...]:
    """What is told of tomorrow's hour from seven, of its runs one by one, and of the coming day."""
    page = await site.page("/ui/load")
    hour = await site.page("/ui/load/hour?at=2027-01-02T07:00:00Z")
    (total,) = re.findall(r"the ([\d,]+) starts of the coming day", page)
    return cells(page, "planned")["2027-01-02 07"][2], *re.findall(r'href="/ui/jobs/([^"]*)"', hour), total


async def test_what_is_remembered_follows_the_jobs_and_the_clock(any_site: Site) -> None:
    await any_site.make(name="daily", cron_expression="30 7 * * *")
    assert await planned(any_site) == ("1", "daily", "1")
    await any_site.make(name="hourly", cron_expression="5 * * * *")
    assert await planned(any_site) == ("2", "hourly", "daily", "25")
    await any_site.send("/ui/jobs/hourly/pause")
    assert await planned(any_site) == ("1", "daily", "1")
    change = {"cron_expression": "0,40 7 * * *"}
    assert (await any_site.client.patch("/api/v2/jobs/daily", json=change)).status_code == 200
    assert await planned(any_site) == ("2", "daily", "daily", "2")
    any_site.clock.advance(hours=19, minutes=20)
    assert await planned(any_site) == ("2", "daily", "2"), "one is overdue and starts now, one is to come"
    assert (await any_site.client.delete("/api/v2/jobs/daily")).status_code == 204
    assert await planned(any_site) == ("·", "0")


async def test_hours_are_those_of_the_readers_zone(site: Site) -> None:
    await site.make(name="daily", cron_expression="30 7 * * *")
    site.client.cookies.set("noonday_zone", "Asia/Tokyo")
    page = await site.page("/ui/load")
    assert cells(page, "planned")["2027-01-02 16"][2] == "1"
    assert "Hours in Asia/Tokyo" in page


async def test_the_quietest_slots_are_named(site: Site) -> None:
    await site.make(name="crowd", cron_expression="*/15 13-23 * * *")
    page = await site.page("/ui/load")
    quiet = page[page.index('id="quiet"') :]
    times = re.findall(r'<time datetime="2027-01-0[12]T(\d\d):\d\d', quiet)
    assert len(times) == 6
    assert all(int(hour) < 13 for hour in times)


async def test_an_empty_scheduler_has_a_load_page(site: Site) -> None:
    assert "every slot is free" in await site.page("/ui/load")
    assert "Nothing is planned" in await site.page("/ui/load/hour")
    assert "Nothing is planned" in await site.page("/ui/load/hour?at=2026-01-01T07:00:00Z")


async def crowd(site: Site) -> None:
    for number in range(12):
        await site.make(name=f"job-{number}", interval_minutes=60)
    site.clock.advance(minutes=1)


async def test_a_preview_changes_nothing_and_the_button_moves(site: Site) -> None:
    await crowd(site)
    page = await site.page("/ui/load/rebalance")
    assert "jobs would move" in page
    number = int(re.findall(r"<h2>(\d+) jobs would move", page)[0])
    assert (await site.stored("job-0")).revision == 1
    address, note = await site.obeyed("/ui/load/rebalance", {"slot_minutes": "15", "most": "100"})
    assert address == "/ui/load"
    assert note.startswith(f"{number} jobs were moved; the spread is 0.")
    moved = [n for n in range(12) if (await site.stored(f"job-{n}")).revision == 2]
    assert len(moved) == number
    assert "No job would move" in await site.page("/ui/load/rebalance")


async def test_a_wrong_slot_is_refused_as_a_page(site: Site) -> None:
    assert "slot_minutes" in await site.page("/ui/load/rebalance?slot_minutes=7", 422)
    answer = await site.send("/ui/load/rebalance", {"slot_minutes": "7"})
    assert answer.status_code == 422


async def test_the_api_tells_the_same(any_site: Site) -> None:
    job = await any_site.make(name="feed")
    await a_run(any_site, job, NOON - 5 * HOUR, took=20 * MINUTE, state="failed")
    seen = await any_site.get("/api/v2/load")
    assert (seen["from"], seen["to"]) == ("2026-12-25T12:00:00Z", "2027-01-08T12:00:00Z")
    assert seen["past"] == [
        {"at": "2027-01-01T07:00:00Z", "starts": 1, "failed": 1, "busy_seconds": pytest.approx(1200)}
    ]
    assert len(seen["planned"]) == 168
    assert seen["planned"][0] == {"at": "2027-01-01T13:00:00Z", "starts": 1, "busy_seconds": 0}
    assert (seen["jobs"], seen["rough"], seen["partial"]) == (1, False, False)


async def test_new_runs_are_seen_at_once_in_whole_slots(site: Site) -> None:
    job = await site.make(name="feed", schedule_type="manual")
    await site.get("/api/v2/load")
    for before in (5 * HOUR, 4 * HOUR, 10 * MINUTE):
        await a_run(site, job, NOON - before)
    assert len((await site.get("/api/v2/load"))["past"]) == 3
    some = await site.get("/api/v2/load?from=2027-01-01T07:09:59Z&to=2027-01-01T08:00:01Z")
    assert [one["at"][11:13] for one in some["past"]] == ["07", "08"]
    none = await site.get("/api/v2/load?from=2027-01-01T07:10:00Z&to=2027-01-01T08:00:00Z")
    assert none["past"] == []


@pytest.mark.parametrize("query", ["from=2026-01-01T00:00:00Z", "to=2029-01-01T00:00:00Z"])
async def test_the_api_refuses_too_wide_a_span(site: Site, query: str) -> None:
    assert (await site.call("GET", f"/api/v2/load?{query}")).status_code == 422
