"""`/ui/jobs/{job}/edit`: the form shows the job, the review the change; nobody overwrites another unseen."""

from __future__ import annotations

import re

from noonday.telemetry.logs import MASK
from tests.web.site import Site, written

BODY = {
    "name": "full",
    "target": {
        "type": "http",
        "url": "https://example.com/x",
        "headers": {"Authorization": "Bearer hunter2", "X-Team": "a"},
        "expected_status": [200, 204],
    },
    "schedule_type": "calendar",
    "frequency": "monthly",
    "time_config": {"day_of_month": 31, "hour": 4, "minute": 5},
    "timezone": "America/New_York",
    "windows": [{"days": ["mon", "wed"], "start": "00:00", "end": "05:30"}],
    "calendar": {"holidays": "US", "excluded_dates": ["2027-01-04"]},
    "start_at": "2026-12-01T00:00:00Z",
    "jitter_seconds": 12.5,
    "tags": ["a", "b c"],
    "config": {"token": "hunter3", "n": [1, {"m": None}]},
    "coalesce": False,
    "catch_up": "latest",
    "overlap": "queue_one",
    "priority": 1,
    "retention_days": 3,
    "description": 'Two < three & "more"',
}


async def test_it_changes_nothing_if_nothing_is_changed(site: Site) -> None:
    parent = await site.make(name="parent")
    await site.make(**{**BODY, "depends_on": [parent["id"]]})
    page = await site.page("/ui/jobs/full/edit")
    assert "hunter" not in page
    assert MASK in page
    answer = await site.send("/ui/jobs/full/edit", {**written(page), "do": "review"})
    assert "Nothing would change." in answer.text, answer.text
    before = await site.stored("full")
    await site.obeyed("/ui/jobs/full/edit", {**written(page), "do": "save"})
    assert await site.stored("full") == before


async def test_it_shows_the_change_before_it_saves_it(any_site: Site) -> None:
    await any_site.make(**BODY)
    form = written(await any_site.page("/ui/jobs/full/edit"))
    sent = {**form, "timeout_seconds": "77", "headers": "X-Team: b"}
    review = await any_site.send("/ui/jobs/full/edit", {**sent, "do": "review"})
    assert "<del>3600</del>" in review.text
    assert "<ins>77</ins>" in review.text
    assert (await any_site.get("/api/v2/jobs/full"))["timeout_seconds"] == 3600
    where, note = await any_site.obeyed("/ui/jobs/full/edit", {**sent, "do": "save"})
    assert (where, note) == ("/ui/jobs/full", "full was changed.")
    saved = await any_site.get("/api/v2/jobs/full")
    assert saved["timeout_seconds"] == 77
    assert saved["target"]["headers"] == {"X-Team": "b"}
    assert saved["target"]["expected_status"] == [200, 204]  # which the form does not show


async def test_it_tells_who_was_slower_what_would_be_lost(site: Site) -> None:
    await site.make(**BODY)
    mine = {**written(await site.page("/ui/jobs/full/edit")), "timeout_seconds": "77", "do": "save"}
    await site.call("PUT", "/api/v2/jobs/full", {"max_retries": 9})
    answer = await site.send("/ui/jobs/full/edit", mine)
    assert answer.status_code == 412
    assert "was changed meanwhile" in answer.text
    assert "anonymous saved it" in answer.text
    assert "<del>9</del>" in answer.text
    assert (await site.get("/api/v2/jobs/full"))["max_retries"] == 9
    revision = re.search(r'name="revision" value="(\d+)"', answer.text)
    assert revision
    await site.obeyed("/ui/jobs/full/edit", {**mine, "revision": revision[1]})
    saved = await site.get("/api/v2/jobs/full")
    assert (saved["timeout_seconds"], saved["max_retries"]) == (77, 3)


async def test_it_keeps_what_was_written_on_the_way_back(site: Site) -> None:
    await site.make(**BODY)
    sent = {**written(await site.page("/ui/jobs/full/edit")), "timeout_seconds": "77", "do": "edit"}
    answer = await site.send("/ui/jobs/full/edit", sent)
    assert answer.status_code == 200
    assert written(answer.text)["timeout_seconds"] == "77"


async def test_it_knows_no_job_that_is_not_there(site: Site) -> None:
    await site.page("/ui/jobs/nobody/edit", status=404)
