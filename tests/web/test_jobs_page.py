"""The list of jobs as a page: found, narrowed, sorted, and acted on, without any script."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest

from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.outcome import Completed, Failed
from noonday.store import facets
from noonday.store.strips import Bar
from noonday.web.strips import strip
from tests.factories import NOON
from tests.web.site import Site


def names(page: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'class="name">\s*<a href="[^"]*">([^<]*)</a>', page)]


async def test_the_first_page_teaches(site: Site) -> None:
    page = await site.page("/ui/jobs")
    assert "There are no jobs yet" in page
    assert "curl -s http://localhost:8060/api/v2/jobs" in page
    assert "matches" not in page


async def test_a_search_without_a_match_can_be_loosened(site: Site) -> None:
    await site.make(name="nightly")
    page = await site.page("/ui/jobs", params={"q": "nightly tag:gone"})
    assert "None of the 1 jobs matches" in page
    assert 'href="/ui/jobs?q=nightly"' in page
    assert "no jobs yet" not in page


async def test_a_wrong_search_says_why(site: Site) -> None:
    await site.make(name="nightly")
    page = await site.page("/ui/jobs", 422, params={"q": "colour:red"})
    assert 'aria-invalid="true"' in page
    assert "names no field" in page
    assert names(page) == []


async def test_values_are_counted_and_lead_to_their_jobs(site: Site) -> None:
    await site.make(name="one", tags=["two words"], priority=1)
    await site.make(name="two")
    page = await site.page("/ui/jobs")
    addresses = [html.unescape(one) for one in re.findall(r'href="(/ui/jobs\?q=[^"]*)"', page)]
    assert "/ui/jobs?q=priority%3Ahigh" in addresses
    (tagged,) = {one for one in addresses if one.startswith("/ui/jobs?q=tag")}
    assert names(await site.page(tagged)) == ["one"]
    assert names(await site.page("/ui/jobs?q=priority%3Ahigh")) == ["one"]
    assert re.search(r'aria-current="true">high', await site.page("/ui/jobs?q=priority%3A1"))


def chips(page: str) -> dict[str, str]:
    """The states with what is said of their number."""
    found = re.findall(r'<a class="chip"[^>]*>(.*?)</a>', page)
    texts = [re.sub(r"<[^>]*>", " ", one).split() for one in found]
    return {words[0]: " ".join(words[1:]) for words in texts}


async def test_of_many_jobs_some_are_counted_and_every_state_is_offered(
    any_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facets, "STRETCH", 3)
    await any_site.make(name="held", tags=["old"])
    await any_site.call("POST", "/api/v2/jobs/held/pause")
    any_site.clock.advance(seconds=1)
    for number in range(4):
        await any_site.make(name=f"job-{number}", tags=["new"])
    page = await any_site.page("/ui/jobs")
    assert chips(page)["scheduled"] == "3+"
    assert chips(page)["paused"] == chips(page)["failed"] == "", "nobody knows how many there are"
    assert "counted among 3 of them" in page
    assert ">5 jobs<" in page
    some = await any_site.page("/ui/jobs?q=tag:new")
    assert ">4 of 5 jobs<" in some, "the page itself shows that there are no more"
    assert names(some) == [f"job-{number}" for number in range(4)]
    few = await any_site.page("/ui/jobs?q=tag:old")
    assert ">1 of 5 jobs<" in few
    assert chips(few) == {"paused": "1"}
    assert names(few) == ["held"]


async def test_the_last_pages_of_many_can_be_reached(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets, "STRETCH", 10)
    for number in range(101):
        await site.make(name=f"job-{number:03}")
    page = await site.page("/ui/jobs?q=job&offset=50")
    assert "51 to 100 of 10+" in page
    assert ">10+ of 101 jobs<" in page
    assert 'rel="next" href="/ui/jobs?q=job&amp;offset=100"' in page
    last = await site.page("/ui/jobs?q=job&offset=100")
    assert "101 to 101 of 101" in last
    assert 'rel="next"' not in last


async def test_jobs_that_are_due_soon_are_counted(any_site: Site) -> None:
    await any_site.make(name="soon", cron_expression="30 * * * *")
    await any_site.make(name="later", schedule_type="once", run_at=(NOON + timedelta(days=3)).isoformat())
    await any_site.make(name="paused", cron_expression="30 * * * *")
    await any_site.call("POST", "/api/v2/jobs/paused/pause")
    page = await any_site.page("/ui/jobs?q=next:%3C1d")
    menu = page[page.index('id="facet-next"') : page.index('id="facet-type"')]
    assert re.findall(r">(within [^<]*) <b>(\d+)</b>", menu) == [
        ("within the hour", "1"),
        ("within a day", "1"),
        ("within a week", "2"),
    ]
    assert "Due: within a day" in menu
    assert 'href="/ui/jobs?q=next%3A%3C7d"' in menu  # instead of the one that was chosen
    assert names(page) == ["soon"]
    assert names(await any_site.page("/ui/jobs?q=next:%3C7d")) == ["later", "soon"]
    assert "1 of 3 jobs" in page


async def test_other_addresses_lead_to_their_pages(site: Site) -> None:
    for address, page in (("/ui/queues", "/ui/workers#lanes-head"), ("/ui/api", "/docs")):
        assert (await site.client.get(address)).headers["location"] == page
    assert 'id="lanes-head"' in await site.page("/ui/workers")
    keys = re.findall(r'data-go="(.)"', await site.page("/ui/jobs"))
    assert set("ojrtlcqwa") <= set(keys)
    assert len(keys) == len(set(keys))


async def test_it_is_sorted_and_turned_round(site: Site) -> None:
    for name in ("b", "a", "c"):
        await site.make(name=name)
    assert names(await site.page("/ui/jobs")) == ["a", "b", "c"]
    page = await site.page("/ui/jobs?sort=-name")
    assert names(page) == ["c", "b", "a"]
    assert re.search(r'aria-sort="descending"[^>]*><a href="/ui/jobs">Job', page)
    await site.page("/ui/jobs?sort=colour", 422)


async def test_many_jobs_come_in_pages(site: Site) -> None:
    for number in range(51):
        await site.make(name=f"job-{number:02}")
    page = await site.page("/ui/jobs?q=job")
    assert "1 to 50 of 51" in page
    assert 'rel="next" href="/ui/jobs?q=job&amp;offset=50"' in page
    last = await site.page("/ui/jobs?q=job&offset=50")
    assert names(last) == ["job-50"]
    assert 'rel="prev" href="/ui/jobs?q=job&amp;offset=0"' in last


async def test_the_last_runs_are_told_in_words_too(site: Site) -> None:
    await site.make(name="nightly", cron_expression="* * * * *", max_retries=0)
    for outcome in (Completed(), Failed(error="down", retryable=False)):
        await site.call("POST", "/api/v2/jobs/nightly/force-run")
        (run,) = await site.claim()
        site.clock.advance(seconds=2)
        await site.end(run, outcome)
    page = await site.page("/ui/jobs")
    assert 'aria-label="last 2: 1 completed, 1 failed; took 2 s to 2 s"' in page
    assert '<span class="bad">50 %</span>' in page


@pytest.mark.parametrize("state", [state for state in ExecutionState if state not in ("pending", "queued")])
def test_each_result_has_a_shape_of_its_own(state: ExecutionState) -> None:
    def drawn(one: ExecutionState) -> str:
        bar = Bar(id=ExecutionId("1"), state=one, due=NOON, took=timedelta(seconds=1))
        found = re.search(r' d="([^"]*)"', str(strip([bar])))
        assert found
        return found[1]

    others = {drawn(one) for one in ExecutionState if one not in ("pending", "queued") and one is not state}
    assert drawn(state) not in others


async def test_selected_jobs_are_looked_at_and_then_paused(site: Site) -> None:
    ids = [(await site.make(name=name))["id"] for name in ("a", "b", "c")]
    page = (await site.send("/ui/bulk", {"action": "pause", "job": ids[:2], "q": "", "sort": "name"})).text
    assert "Pause 2 jobs?" in page
    assert not (await site.stored("a")).paused
    sure = {"action": "pause", "job": ids[:2], "sure": "yes", "expect": "2"}
    assert await site.obeyed("/ui/bulk", sure) == ("/ui/jobs", "2 jobs paused.")
    assert [(await site.stored(name)).paused for name in "abc"] == [True, True, False]


async def test_all_that_match_are_meant_only_as_long_as_they_are_as_many(site: Site) -> None:
    for name in ("crawl-1", "crawl-2", "other"):
        await site.make(name=name)
    form = {"action": "disable", "every": "yes", "q": "crawl"}
    assert "Disable 2 jobs?" in (await site.send("/ui/bulk", form)).text
    await site.make(name="crawl-3")
    answer = await site.send("/ui/bulk", form | {"sure": "yes", "expect": "2"})
    assert answer.status_code == 409
    assert (await site.stored("crawl-1")).enabled
    where, note = await site.obeyed("/ui/bulk", form | {"sure": "yes", "expect": "3"})
    assert (where, note) == ("/ui/jobs?q=crawl", "3 jobs switched off.")
    assert (await site.stored("other")).enabled


async def test_what_failed_is_listed_with_its_reason(site: Site) -> None:
    parent = await site.make(name="parent")
    await site.make(name="child", depends_on=["parent"])
    form = {"action": "delete", "job": [parent["id"]], "sure": "yes", "expect": "1"}
    page = (await site.send("/ui/bulk", form)).text
    assert "not all of them" in page
    assert "child" in page


async def test_one_job_is_run_at_once_by_its_button(site: Site) -> None:
    job = await site.make(name="nightly")
    where, note = await site.obeyed("/ui/bulk", {"one": f"run:{job['id']}", "from": "list", "q": "night"})
    assert (where, note) == ("/ui/jobs?q=night", "1 job started.")
    assert len(await site.claim()) == 1


async def test_nothing_selected_changes_nothing(site: Site) -> None:
    await site.make(name="nightly")
    _, note = await site.obeyed("/ui/bulk", {"action": "delete", "sure": "yes"})
    assert note.startswith("Nothing was selected")
    assert await site.stored("nightly")
    assert (await site.send("/ui/bulk", {"action": "explode", "every": "yes"})).status_code == 422
