"""Runs as pages: the list and its searches, one run with its path, attempts and output, and its forms."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.outcome import Accepted, Completed, Failed, Result
from noonday.store import outputs
from tests.api.caller import token_of
from tests.web.site import Site


def runs_of(page: str) -> list[str]:
    """The names of the jobs, in the order of the list."""
    found = re.findall(r'class="name"><a href="/ui/runs/[^"]*">([^<]*)', page)
    return [html.unescape(one).strip() for one in found]


async def a_run(site: Site, name: str, config: Mapping[str, Any] | None = None, **job: Any) -> Execution:
    """One that is going on."""
    site.clock.advance(seconds=1)
    await site.make(name=name, schedule_type="manual", **job)
    answer = await site.call("POST", f"/api/v2/jobs/{name}/force-run", {"config": config} if config else None)
    assert answer.status_code < 300, answer.text
    (run,) = await site.claim()
    return run


async def write(site: Site, run: Execution, text: str, attempt: int = 1) -> None:
    await site.db.write(lambda conn: outputs.add(conn, run.id, attempt, text, site.clock.now()))


class TestTheList:
    async def test_it_teaches_where_nothing_has_run(self, site: Site) -> None:
        assert "Nothing has run yet" in await site.page("/ui/runs")

    async def test_newest_first_with_counts_that_lead_on(self, any_site: Site) -> None:
        site = any_site
        await site.end(await a_run(site, "first"), Completed())
        await site.end(await a_run(site, "second", max_retries=0), Failed(error="<no> table"))
        page = await site.page("/ui/runs")
        assert runs_of(page) == ["second", "first"]
        assert "&lt;no&gt; table" in page
        address = re.search(r'href="([^"]*)">(?:(?!</a>).)*failed.*?<b>1</b>', page)
        assert address is not None
        failed = await site.page(html.unescape(address[1]))
        assert runs_of(failed) == ["second"]
        assert 'href="/ui/runs?q=status%3Afailed%2Ccompleted"' in failed  # counted as if it was not chosen
        assert 'aria-current="true"' in failed

    async def test_a_search_finds_nothing_or_is_wrong(self, site: Site) -> None:
        await site.end(await a_run(site, "first"), Completed())
        nothing = await site.page("/ui/runs", params={"q": "first status:failed"})
        assert "No run matches" in nothing
        assert 'href="/ui/runs?q=first"' in nothing
        wrong = await site.page("/ui/runs", 422, params={"q": "colour:red"})
        assert "names no field" in wrong
        assert 'aria-invalid="true"' in wrong
        await site.page("/ui/runs", 422, params={"after": "nonsense"})

    async def test_it_goes_on_where_the_page_ended(self, site: Site) -> None:
        for number in range(52):
            await site.end(await a_run(site, f"job-{number:02}"), Completed())
        page = await site.page("/ui/runs")
        older = re.search(r'rel="next" href="([^"]*)"', page)
        assert older is not None
        rest = await site.page(html.unescape(older[1]))
        assert runs_of(page) + runs_of(rest) == [f"job-{number:02}" for number in reversed(range(52))]
        assert 'data-live="executions' not in rest  # what was is not chased
        assert 'rel="next"' not in rest


class TestOne:
    async def test_a_failure_with_its_path_and_attempts(self, site: Site) -> None:
        run = await a_run(site, "digest", max_retries=1, retry_backoff_seconds=10)
        site.clock.advance(seconds=3)
        await site.end(run, Failed(error="first <try>"))
        waiting = await site.page(f"/ui/runs/{run.id}")
        assert "next try" in waiting
        assert "Error of the attempt before" in waiting
        assert 'data-live="executions"' in waiting
        site.clock.advance(seconds=20)
        (again,) = await site.claim()
        site.clock.advance(seconds=90)
        await site.end(again, Failed(error="second <try>", stack="Traceback <1>"))
        page = await site.page(f"/ui/runs/{run.id}")
        assert page.count("first &lt;try&gt;") == 1
        assert "Traceback &lt;1&gt;" in page
        assert "took 1 min 30 s" in page
        assert 'data-live="executions"' not in page
        steps = re.findall(r'<li class="(?:done|ahead)">.*?</li>', page, re.DOTALL)
        words = [re.sub(r"<[^>]*>", " ", step).split() for step in steps]
        ways = ["queued", "claimed", "running", "failed"]
        gaps = re.findall(r'<span class="gap">([^<]*)', page)
        assert gaps == ["23 s of earlier attempts", "took 1 min 30 s"]  # what took no time is not told
        assert [next(word for word in step if word in ways) for step in words] == ways
        assert len(re.findall(r'<rect class="bad"', page)) == 2

    async def test_progress_and_what_it_was_given(self, site: Site) -> None:
        run = await a_run(
            site,
            "digest",
            {"size": 5, "password": "hush"},
            target={"type": "http", "url": "https://example.com"},
        )
        await site.end(run, Accepted(heartbeat=timedelta(seconds=90)))
        report = {"progress": 0.25, "message": "a quarter", "output": "page 1\n"}
        headers = {"Authorization": f"Bearer {token_of(run.id, 1)}"}
        await site.call("POST", f"/api/v2/executions/{run.id}/callback/progress", report, headers=headers)
        page = await site.page(f"/ui/runs/{run.id}")
        assert '<progress max="1" value="0.25"' in page
        assert "a quarter" in page
        assert "&#34;size&#34;: 5" in page
        assert "hush" not in page
        assert "page 1" in page

    async def test_the_result(self, site: Site) -> None:
        run = await a_run(site, "digest")
        result = Result(items_processed=1234, value={"sent": True}, metadata={"token": "hush", "mails": 2})
        await site.end(run, Completed(result=result))
        page = await site.page(f"/ui/runs/{run.id}")
        assert "1,234" in page
        assert "&#34;sent&#34;: true" in page
        assert "&#34;mails&#34;: 2" in page
        assert "hush" not in page

    async def test_a_run_of_a_job_that_is_gone(self, site: Site) -> None:
        run = await a_run(site, "digest")
        await site.end(run, Completed())
        await site.call("DELETE", "/api/v2/jobs/digest")
        page = await site.page(f"/ui/runs/{run.id}")
        assert "a job that is gone" in page
        assert "/again" not in page

    @pytest.mark.parametrize("name", ["nonsense", "01943d00-0000-7000-8000-000000000000"])
    async def test_there_is_no_such_run(self, site: Site, name: str) -> None:
        await site.page(f"/ui/runs/{name}", 404)


class TestForms:
    async def test_cancel(self, site: Site) -> None:
        run = await a_run(site, "digest")
        assert f'action="/ui/runs/{run.id}/cancel"' in await site.page(f"/ui/runs/{run.id}")
        where, note = await site.obeyed(f"/ui/runs/{run.id}/cancel")
        assert (where, note) == (f"/ui/runs/{run.id}", "The run is asked to stop.")
        page = await site.page(where)
        assert "asked to stop by anonymous" in page
        assert f'action="/ui/runs/{run.id}/cancel"' not in page

    async def test_what_has_ended_cannot_be_cancelled(self, site: Site) -> None:
        run = await a_run(site, "digest")
        await site.end(run, Completed())
        assert (await site.send(f"/ui/runs/{run.id}/cancel")).status_code == 409

    async def test_again_with_the_same_configuration(self, site: Site) -> None:
        run = await a_run(site, "digest", {"size": 5}, max_retries=0)
        await site.end(run, Failed(error="no"))
        where, _ = await site.obeyed(f"/ui/runs/{run.id}/again")
        assert where != f"/ui/runs/{run.id}"
        (new,) = await site.claim()
        assert (where, new.config) == (f"/ui/runs/{new.id}", {"size": 5})
        assert new.state is ExecutionState.RUNNING


class TestOutput:
    async def test_it_is_on_the_page_and_to_be_had_whole(self, site: Site) -> None:
        run = await a_run(site, "digest")
        await write(site, run, "one <b>\n")
        page = await site.page(f"/ui/runs/{run.id}")
        assert "one &lt;b&gt;" in page
        assert f'<log-tail data-run="{run.id}">' in page
        answer = await site.client.get(f"/ui/runs/{run.id}/output.txt")
        assert (answer.text, answer.headers["content-type"]) == ("one <b>\n", "text/plain; charset=utf-8")
        assert answer.headers["content-disposition"].startswith("attachment;")

    async def test_each_attempt_has_its_own(self, site: Site) -> None:
        run = await a_run(site, "digest", max_retries=1, retry_backoff_seconds=0)
        await write(site, run, "of the first\n")
        await site.end(run, Failed(error="no"))
        site.clock.advance(seconds=60)
        (again,) = await site.claim()
        await write(site, again, "of the second\n", 2)
        newest = await site.page(f"/ui/runs/{run.id}")
        assert "of the second" in newest
        assert "of the first" not in newest
        first = await site.page(f"/ui/runs/{run.id}?attempt=1")
        assert "of the first" in first
        assert 'data-attempt="1"' in first

    async def test_a_program_reads_on(self, any_site: Site) -> None:
        site = any_site
        run = await a_run(site, "digest")
        address = f"/api/v2/executions/{run.id}/output"
        assert (await site.get(address))["pieces"] == []
        await write(site, run, "one\ntwo\n")
        found = await site.get(address)
        assert [(one["place"], one["line"], one["text"]) for one in found["pieces"]] == [(0, 0, "one\ntwo\n")]
        assert (found["next"], found["more"], found["ended"], found["attempt"]) == (8, False, False, 1)
        await write(site, run, "three\n")
        more = await site.get(address, params={"after": found["next"]})
        assert [(one["place"], one["line"], one["text"]) for one in more["pieces"]] == [(8, 2, "three\n")]
        await site.end(run, Completed())
        assert (await site.get(address, params={"after": 14}))["ended"]
        assert (await site.call("GET", f"{address}?attempt=2")).status_code == 404
