"""What the forms of a job's page do, without a script."""

from __future__ import annotations

from datetime import timedelta

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


async def test_pause_for_a_while_until_a_time_and_for_good(site: Site) -> None:
    await site.make(name="nightly")
    _, note = await site.obeyed("/ui/jobs/nightly/pause", {"hours": "4", "until": ""})
    assert note == "nightly is paused for 4 h."
    assert (await site.stored("nightly")).paused_until == site.clock.now() + timedelta(hours=4)
    site.client.cookies.set("noonday_zone", "Asia/Tokyo")
    await site.obeyed("/ui/jobs/nightly/pause", {"until": "2027-01-02T09:00"})
    assert (await site.stored("nightly")).paused_until.isoformat() == "2027-01-02T00:00:00+00:00"
    await site.obeyed("/ui/jobs/nightly/pause", {"until": ""})
    paused = await site.stored("nightly")
    assert (paused.paused, paused.paused_until) == (True, None)
    await site.obeyed("/ui/jobs/nightly/resume")
    assert not (await site.stored("nightly")).paused


async def test_a_wrong_end_of_a_pause_is_refused(site: Site) -> None:
    await site.make(name="nightly")
    for form in ({"hours": "-1"}, {"until": "tomorrow"}, {"until": "2001-01-01T00:00"}):
        answer = await site.send("/ui/jobs/nightly/pause", form)
        assert answer.status_code == 422, answer.text
    assert not (await site.stored("nightly")).paused


async def test_the_next_run_can_be_skipped(any_site: Site) -> None:
    await any_site.make(name="nightly")
    _, note = await any_site.obeyed("/ui/jobs/nightly/skip-next")
    assert note == "The next run of nightly at 2027-01-01 13:00:00 UTC will not happen."
    shown = await any_site.get("/api/v2/jobs/nightly")
    assert shown["next_run_at"] == "2027-01-01T14:00:00Z"
    (row,) = (await any_site.get("/api/v2/jobs/nightly/executions"))["executions"]
    assert (row["skip_reason"], row["reason"]) == (SkipReason.SKIPPED.value, "somebody skipped it")


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
    assert "/api/v2/triggers/webhook/news/*" in await site.page("/ui/jobs/nightly/triggers")
    await site.obeyed("/ui/jobs/nightly/triggers/remove")
    assert (await site.stored("nightly")).trigger.webhook is None
