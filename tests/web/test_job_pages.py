"""The sides of a job: what each of them shows, and where it leads."""

from __future__ import annotations

from datetime import timedelta

from noonday.domain.outcome import Completed, Failed
from tests.web.site import Site

SIDES = ("", "/runs", "/schedule", "/configuration", "/dependencies", "/triggers", "/history")


async def ran(site: Site, job: str, outcome: Completed | Failed, seconds: int = 2) -> str:
    answer = await site.call("POST", f"/api/v2/jobs/{job}/force-run")
    assert answer.status_code == 202, answer.text
    (run,) = await site.claim()
    site.clock.advance(seconds=seconds)
    await site.end(run, outcome)
    return run.id


async def test_each_side_opens_on_both_databases(any_site: Site) -> None:
    await any_site.make(name="nightly")
    for side in SIDES:
        text = await any_site.page(f"/ui/jobs/nightly{side}")
        assert "<h1>nightly" in text
        assert text.count('aria-current="page"') == 2  # in the bar and among the sides
        assert "every hour" in text


async def test_an_unknown_job_is_not_found(site: Site) -> None:
    for side in (*SIDES, "/run", "/cancel", "/delete", "/revert?to=1"):
        await site.page(f"/ui/jobs/nobody{side}", 404)


async def test_the_overview_counts_what_happened(site: Site) -> None:
    await site.make(name="nightly", max_retries=0)
    for seconds in (1, 2, 3):
        await ran(site, "nightly", Completed(), seconds)
    failed = await ran(site, "nightly", Failed(error="no space left on the moon", retryable=False))
    text = await site.page("/ui/jobs/nightly")
    assert "<b>4</b> runs" in text
    assert "<b>75.0 %</b> succeeded" in text
    assert "<b>2 s</b> p50" in text
    assert "no space left on the moon" in text
    assert f'href="/ui/runs/{failed}"' in text
    assert "2027-01-01: 3 completed" in text
    assert "last 4: 3 completed, 1 failed" in text


async def test_it_says_why_nothing_runs(site: Site) -> None:
    await site.make(name="nightly")
    assert "It runs next <time" in await site.page("/ui/jobs/nightly")
    await site.call("POST", "/api/v2/jobs/nightly/disable")
    assert "It is switched off" in await site.page("/ui/jobs/nightly")
    await site.call("POST", "/api/v2/jobs/nightly/enable")
    end = site.clock.now() + timedelta(hours=2)
    await site.call("POST", "/api/v2/jobs/nightly/pause", {"until": end.isoformat()})
    text = await site.page("/ui/jobs/nightly")
    assert "It is paused, and goes on by itself" in text
    assert ">in 2 h</time>" in text


async def test_runs_are_filtered_by_the_address(site: Site) -> None:
    await site.make(name="nightly", max_retries=0)
    good = await ran(site, "nightly", Completed())
    bad = await ran(site, "nightly", Failed(error="broken", retryable=False))
    both = await site.page("/ui/jobs/nightly/runs")
    assert good in both
    assert bad in both
    only = await site.page("/ui/jobs/nightly/runs?status=failed")
    assert bad in only
    assert good not in only
    assert "No run of it is cancelled" in await site.page("/ui/jobs/nightly/runs?status=cancelled")


async def test_the_schedule_names_the_change_of_clocks(site: Site) -> None:
    site.clock.at = site.clock.at.replace(month=3, day=20)
    await site.make(name="spring", cron_expression="30 2 * * 6,0", timezone="Europe/Berlin")
    text = await site.page("/ui/jobs/spring/schedule")
    assert "Clocks go forward on Sun 2027-03-28" in text
    assert 'data-tz="Europe/Berlin"' in text
    assert "2027-03-28 03:00:00 CEST" in text


async def test_the_configuration_masks_secrets(site: Site) -> None:
    await site.make(name="nightly", config={"api_key": "very-secret-word", "batch": 7})
    text = await site.page("/ui/jobs/nightly/configuration")
    assert "very-secret-word" not in text
    assert "&#34;batch&#34;: 7" in text


async def test_dependencies_are_a_picture_with_words(any_site: Site) -> None:
    await any_site.make(name="fetch")
    await any_site.make(name="index", depends_on=["fetch"])
    await any_site.make(name="mail", schedule_type="manual", on_success_of=["index"])
    text = await any_site.page("/ui/jobs/index/dependencies")
    assert text.count('class="edge"') == 2  # one of the legend
    assert text.count('class="edge follows"') == 2
    assert "<li>index waits for fetch</li>" in text
    assert "<li>mail runs after each success of index</li>" in text
    assert 'href="/ui/jobs/fetch/dependencies"' in text
    far = await any_site.page("/ui/jobs/mail/dependencies")
    assert "<li>index waits for fetch</li>" in far  # beyond the next one, too


async def test_the_history_shows_each_field_that_changed(site: Site) -> None:
    await site.make(name="nightly", config={"batch": 7, "keep": 1})
    site.clock.advance(minutes=1)
    await site.call("PATCH", "/api/v2/jobs/nightly", {"config": {"batch": 8}})
    text = await site.page("/ui/jobs/nightly/history")
    assert '<th scope="row">config.batch</th>' in text
    assert "<del>7</del>" in text
    assert "<ins>8</ins>" in text
    assert '<a class="button" href="/ui/jobs/nightly/revert?to=1">' in text
    asked = await site.page("/ui/jobs/nightly/revert?to=1")
    assert "<del>8</del>" in asked
    assert "<ins>7</ins>" in asked


async def test_the_audit_shows_every_change_and_finds_them(any_site: Site) -> None:
    await any_site.make(name="nightly", description="first")
    any_site.clock.advance(minutes=1)
    await any_site.call("PATCH", "/api/v2/jobs/nightly", {"description": "second"})
    text = await any_site.page("/ui/audit")
    assert "2 changes" in text
    assert "<del>first</del>" in text
    assert 'href="/ui/jobs/nightly/history"' in text
    assert "1 change found" in await any_site.page("/ui/audit?q=action:update")
    assert "Nothing matches" in await any_site.page("/ui/audit?q=actor:nobody")
    assert 'id="wrong"' in await any_site.page("/ui/audit?q=colour:red", 422)
