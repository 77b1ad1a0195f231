"""What lists with a search share, on the list of runs: fields to choose from, and how many of how many."""

from __future__ import annotations

import html
import re
from typing import Any

from noonday.domain.outcome import Completed, Failed
from noonday.web.facets import choices, one_of
from tests.web.site import Site


def menu_of(page: str, field: str) -> dict[str, tuple[str, str | None]]:
    """Where each value of a facet leads, and how many there are of it."""
    menu = re.search(rf'id="facet-{field}">.*?</details>', page, re.DOTALL)
    assert menu is not None
    found = re.findall(r'<li><a href="([^"]*)"[^>]*>([^<]*?)(?: <b>([\d,]+)</b>)?</a>', menu[0])
    return {word: (html.unescape(address), count or None) for address, word, count in found}


async def run(site: Site, name: str, outcome: Any, **job: Any) -> None:
    await site.make(name=name, schedule_type="manual", max_retries=0, **job)
    await site.call("POST", f"/api/v2/jobs/{name}/force-run")
    (claimed,) = await site.claim()
    await site.end(claimed, outcome)


async def test_runs_are_chosen_by_what_their_jobs_are(any_site: Site) -> None:
    mail = {"type": "service", "service": "mail", "endpoint": "/send"}
    await run(any_site, "digest", Completed(), tags=["mail", "nightly"], target=mail)
    await run(any_site, "bounces", Failed(error="down"), tags=["mail"], target=mail)
    await run(any_site, "backup", Completed(), tags=["nightly"])
    page = await any_site.page("/ui/runs")
    assert ">3 runs</p>" in page
    assert menu_of(page, "service") == {"mail": ("/ui/runs?q=service%3Amail", "2")}
    assert menu_of(page, "tag") == {
        "mail": ("/ui/runs?q=tag%3Amail", "2"),
        "nightly": ("/ui/runs?q=tag%3Anightly", "2"),
    }
    failed = await any_site.page("/ui/runs?q=status:failed")
    assert ">1 of 3 runs</p>" in failed
    assert {word: count for word, (_, count) in menu_of(failed, "tag").items()} == {"mail": "1"}
    tagged = await any_site.page("/ui/runs?q=status:completed tag:nightly due:<1h")
    assert ">2 runs</p>" in tagged
    assert menu_of(tagged, "tag")["mail"][1] == "1"  # counted as if none was chosen
    assert menu_of(tagged, "service")["mail"][1] == "1"
    assert menu_of(tagged, "due")["in the last day"] == (
        "/ui/runs?q=status%3Acompleted+tag%3Anightly+due%3A%3C1d",
        None,
    )
    assert "Due: in the last hour" in tagged


def test_a_value_is_found_under_its_number_or_its_word() -> None:
    words = {"1": "high", "2": "normal"}
    for q in ("priority:high", "priority:1"):
        high, normal = choices(q, "priority", {"1": 3, "2": 5}, str, order=("1", "2"), words=words)
        assert (high.word, high.count, high.chosen, high.address) == ("high", 3, True, "")
        assert (normal.chosen, normal.address) == (False, f"{q},normal")


def test_only_the_most_frequent_values_are_offered_and_what_was_chosen() -> None:
    counts = {f"tag-{number:02}": number for number in range(1, 30)}
    found = choices("tag:rare", "tag", counts, str)
    assert [one.value for one in found] == [*(f"tag-{number:02}" for number in range(29, 14, -1)), "rare"]
    assert (found[-1].count, found[-1].chosen) == (0, True)


def test_one_of_several_stretches_takes_the_place_of_another() -> None:
    hour, day = one_of("a next:<1h", "next", {"<1h": 1}, str, {"<1h": "soon", "<1d": "today"})
    assert (hour.chosen, hour.address, hour.count) == (True, "a", 1)
    assert (day.chosen, day.address, day.count) == (False, "a next:<1d", None)
