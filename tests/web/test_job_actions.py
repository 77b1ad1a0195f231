"""What the forms of a job's page do, without a script."""

from __future__ import annotations

import re

from noonday.domain.execution import SkipReason
from noonday.domain.outcome import Failed
from tests.web.site import Site


async def test_run_now_leads_to_the_run(site: Site) -> None:
    await site.make(name="nightly")
    address, note = await site.obeyed("/ui/jobs/nightly/run")
    (run,) = await site.claim()
    assert address == f"/ui/runs/{run.id}"
    assert "nightly runs now" in note


async def test_a_run_may_have_a_config_of_its_own(site: Site) -> None:
    await site.make(name="nightly", config={"batch": 7, "api_key": "very-secret-word"})
    form = await site.page("/ui/jobs/nightly/run")
    assert "very-secret-word" not in form
    mask = form.split("api_key&#34;: &#34;")[1].split("&#34;")[0]
    await site.obeyed("/ui/jobs/nightly/run", {"config": f'{{"batch": 9, "api_key": "{mask}"}}'})
    (run,) = await site.claim()
    assert run.config == {"batch": 9, "api_key": "very-secret-word"}


async def test_a_wrong_config_is_told_where_it_was_typed(site: Site) -> None:
    await site.make(name="nightly")
    for typed, told in (("{batch: 9}", "is not JSON"), ("[1]", "must be a JSON object")):
        answer = await site.send("/ui/jobs/nightly/run", {"config": typed})
        assert answer.status_code == 422
        assert told in answer.text
        assert 'aria-invalid="true"' in answer.text
        assert typed in answer.text
    assert await site.claim() == []


def offers(page: str) -> dict[str, str]:
    """What the menu of pauses offers: words -> the value that its button sends."""
    found = re.findall(r'<button name="offer" value="([^"]+)">([^<]+)</button>', page)
    return {word: value for value, word in found}


async def test_a_pause_ends_when_the_offer_says(site: Site) -> None:
    await site.make(name="nightly")
    site.client.cookies.set("noonday_zone", "America/New_York")  # where it is Friday, 07:00
    found = offers(await site.page("/ui/jobs/nightly"))
    assert list(found) == ["for 1 hour", "until tomorrow 09:00", "until Monday 09:00"]
    for word, end, told in (
        ("for 1 hour", "2027-01-01T13:00:00+00:00", "Fri 2027-01-01 08:00 EST"),
        ("until tomorrow 09:00", "2027-01-02T14:00:00+00:00", "Sat 2027-01-02 09:00 EST"),
        ("until Monday 09:00", "2027-01-04T14:00:00+00:00", "Mon 2027-01-04 09:00 EST"),
    ):
        _, note = await site.obeyed("/ui/jobs/nightly/pause", {"offer": found[word], "until": ""})
        assert note == f"nightly is paused until {told}."
        assert (await site.stored("nightly")).paused_until.isoformat() == end


async def test_on_a_sunday_tomorrow_is_monday(site: Site) -> None:
    await site.make(name="nightly")
    site.clock.advance(hours=48)
    found = offers(await site.page("/ui/jobs/nightly"))
    assert list(found) == ["for 1 hour", "until tomorrow 09:00"]


async def test_pause_until_a_time_of_ones_own_and_for_good(site: Site) -> None:
    await site.make(name="nightly")
    site.client.cookies.set("noonday_zone", "Asia/Tokyo")
    await site.obeyed("/ui/jobs/nightly/pause", {"until": "2027-01-02T09:00"})
    assert (await site.stored("nightly")).paused_until.isoformat() == "2027-01-02T00:00:00+00:00"
    await site.obeyed("/ui/jobs/nightly/pause", {"until": ""})
    paused = await site.stored("nightly")
    assert (paused.paused, paused.paused_until) == (True, None)
    await site.obeyed("/ui/jobs/nightly/resume")
    assert not (await site.stored("nightly")).paused


async def test_a_wrong_end_of_a_pause_is_told_at_its_field(site: Site) -> None:
    await site.make(name="nightly")
    for typed, told in (("tomorrow", "is no time"), ("2001-01-01T00:00", "has passed")):
        answer = await site.send("/ui/jobs/nightly/pause", {"until": typed})
        assert answer.status_code == 422, answer.text
        assert told in answer.text.split('id="until-wrong">')[1].split("</p>")[0]
        assert f'name="until" value="{typed}" aria-invalid="true"' in answer.text
    assert not (await site.stored("nightly")).paused


async def test_the_next_run_can_be_skipped(any_site: Site) -> None:
    await any_site.make(name="nightly")
    page = await any_site.page("/ui/jobs/nightly")
    assert ">Skip 13:00 UTC</button>" in page
    at = re.search(r'name="at" value="([^"]+)"', page)
    assert at
    _, note = await any_site.obeyed("/ui/jobs/nightly/skip-next", {"at": at[1]})
    assert note == "The next run of nightly at Fri 2027-01-01 13:00 UTC will not happen."
    shown = await any_site.get("/api/v2/jobs/nightly")
    assert shown["next_run_at"] == "2027-01-01T14:00:00Z"
    (row,) = (await any_site.get("/api/v2/jobs/nightly/executions"))["executions"]
    assert (row["skip_reason"], row["reason"]) == (SkipReason.SKIPPED.value, "somebody skipped it")
    _, late = await any_site.obeyed("/ui/jobs/nightly/skip-next", {"at": at[1]})  # the button of an old page
    assert late == "Nothing is skipped: nightly has another next run by now."
    assert (await any_site.get("/api/v2/jobs/nightly"))["next_run_at"] == "2027-01-01T14:00:00Z"


async def test_a_failed_job_is_tried_again(site: Site) -> None:
    await site.make(name="nightly", max_retries=0)
    await site.obeyed("/ui/jobs/nightly/run")
    (run,) = await site.claim()
    await site.end(run, Failed(error="broken", retryable=False))
    assert ">Retry<" in await site.page("/ui/jobs/nightly")
    address, _ = await site.obeyed("/ui/jobs/nightly/retry")
    (again,) = await site.claim()
    assert address == f"/ui/runs/{again.id}"


async def test_the_schedule_is_switched_off_and_on(site: Site) -> None:
    await site.make(name="nightly")
    await site.obeyed("/ui/jobs/nightly/disable")
    assert not (await site.stored("nightly")).enabled
    await site.obeyed("/ui/jobs/nightly/enable")
    assert (await site.stored("nightly")).enabled


async def test_cancel_and_delete_ask_first(site: Site) -> None:
    await site.make(name="nightly")
    assert "cannot be taken back" in await site.page("/ui/jobs/nightly/cancel")
    await site.obeyed("/ui/jobs/nightly/cancel")
    assert "cancelled for good" in await site.page("/ui/jobs/nightly")
    assert "gone for good" in await site.page("/ui/jobs/nightly/delete")
    address, _ = await site.obeyed("/ui/jobs/nightly/delete")
    assert address == "/ui/jobs"
    await site.page("/ui/jobs/nightly", 404)


async def test_revert_is_refused_once_somebody_else_changed_the_job(site: Site) -> None:
    await site.make(name="nightly", description="first")
    await site.call("PATCH", "/api/v2/jobs/nightly", {"description": "second"})
    await site.call("PATCH", "/api/v2/jobs/nightly", {"description": "third"})
    stale = await site.send("/ui/jobs/nightly/revert", {"to": "1", "revision": "2"})
    assert stale.status_code in (409, 412)
    await site.obeyed("/ui/jobs/nightly/revert", {"to": "1", "revision": "3"})
    assert (await site.stored("nightly")).description == "first"


async def test_triggers_are_set_and_removed(site: Site) -> None:
    await site.make(name="nightly")
    await site.obeyed("/ui/jobs/nightly/triggers", {"kind": "webhook", "pattern": "/news/*"})
    assert "/api/v2/triggers/webhook/news/1 -d" in await site.page("/ui/jobs/nightly/triggers")
    wrong = await site.send("/ui/jobs/nightly/triggers", {"kind": "webhook", "pattern": "/news/a-*"})
    assert wrong.status_code == 422
    assert "stand for whole segments" in wrong.text.split('id="pattern-wrong">')[1].split("</p>")[0]
    assert 'value="/news/a-*"' in wrong.text
    await site.obeyed("/ui/jobs/nightly/triggers/remove")
    assert (await site.stored("nightly")).trigger.webhook is None


async def test_what_is_dangerous_stands_apart_at_the_end(site: Site) -> None:
    await site.make(name="nightly")
    page = await site.page("/ui/jobs/nightly")
    row, _, menu = page.split('aria-label="Actions"')[1].split("</nav>")[0].partition('id="more-acts"')
    order = ("Run now", "Pause", "Skip", "Edit")
    places = [row.index(f">{word}") for word in order]
    assert places == sorted(places)
    assert "Delete" not in row
    assert menu.index("Duplicate") < menu.index('class="apart"') < menu.index("Cancel") < menu.index("Delete")
