"""What a run's page tells of what is around it: runs beside it, its cause, its definition, what is usual."""

from __future__ import annotations

import html
import re

from noonday.control.executions import Executions
from noonday.domain.execution import Execution
from noonday.domain.outcome import Completed, Failed
from tests.web.site import Site


async def ran(site: Site, name: str, seconds: float = 10) -> Execution:
    """One more run of the job, from its start to its good end."""
    site.clock.advance(minutes=1)
    await site.call("POST", f"/api/v2/jobs/{name}/force-run")
    (run,) = await site.claim()
    site.clock.advance(seconds=seconds)
    await site.end(run, Completed())
    return run


async def fact(site: Site, run: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd>(.*?)</dd>", await site.page(f"/ui/runs/{run}"), re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", found[1]).split())) if found else ""


async def test_the_runs_beside_it(any_site: Site) -> None:
    site = any_site
    for name in ("digest", "other"):
        await site.make(name=name, schedule_type="manual")
    runs = [await ran(site, "digest") for _ in range(3)]
    await ran(site, "other")
    middle = await site.page(f"/ui/runs/{runs[1].id}")
    assert re.search(rf'href="/ui/runs/{runs[0].id}" rel="prev">← #1', middle)
    assert re.search(rf'href="/ui/runs/{runs[2].id}" rel="next">#3', middle)
    newest = await site.page(f"/ui/runs/{runs[2].id}")
    assert 'rel="next"' not in newest


async def test_how_long_it_takes_beside_what_is_usual(site: Site) -> None:
    await site.make(name="digest", schedule_type="manual")
    first = await ran(site, "digest")
    assert await fact(site, first.id, "Took") == "10 s"  # one run says nothing of what is usual
    for _ in range(5):
        await ran(site, "digest")
    assert await fact(site, first.id, "Took") == "10 s usually 10 s"
    assert await fact(site, (await ran(site, "digest", 25)).id, "Took") == (
        "25 s 2.5 times as long as usual, which is 10 s"
    )
    assert await fact(site, (await ran(site, "digest", 4)).id, "Took") == "4 s usually 10 s"
    await site.call("POST", "/api/v2/jobs/digest/force-run")
    (running,) = await site.claim()
    assert await fact(site, running.id, "Takes") == "usually 10 s"


async def test_a_follower_leads_to_the_run_it_follows(any_site: Site) -> None:
    site = any_site
    first = await site.make(name="import", schedule_type="manual")
    await site.make(name="digest", schedule_type="manual", on_success_of=[first["id"]])
    parent = await ran(site, "import")
    (child,) = await site.claim()
    assert await fact(site, child.id, "Cause") == "import #1 , which succeeded"
    assert f'href="/ui/runs/{parent.id}">import #1' in await site.page(f"/ui/runs/{child.id}")
    confined = await Executions(site.db, site.clock).around(child, "mine")
    assert confined.parent is None  # it is nobody's job, and so none of this service


async def test_a_triggered_run_names_its_delivery(any_site: Site) -> None:
    site = any_site
    await site.make(name="crawl", schedule_type="event", trigger_webhook="/sources/*")
    answer = await site.client.post(
        "/api/v2/triggers/webhook/sources/7", json={}, headers={"webhook-id": "msg_1"}
    )
    assert answer.status_code < 300, answer.text
    (run,) = await site.claim()
    assert await fact(site, run.id, "Cause") == "webhook /sources/7 , delivery anonymous msg_1"


async def test_the_definition_that_it_ran_with(site: Site) -> None:
    await site.make(name="digest", schedule_type="manual")
    old = await ran(site, "digest")
    site.clock.advance(minutes=1)
    await site.call("PATCH", "/api/v2/jobs/digest", {"description": "new"})
    new = await ran(site, "digest")
    assert await fact(site, old.id, "Definition") == "revision 1 by anonymous; now 2"
    assert await fact(site, new.id, "Definition") == "revision 2 by anonymous"
    assert re.search(
        r'href="/ui/jobs/digest/history#change-[0-9a-f-]{36}">', await site.page(f"/ui/runs/{old.id}")
    )


async def test_its_trace_is_the_one_that_its_target_was_told(site: Site) -> None:
    await site.make(name="digest", schedule_type="manual")
    run = await ran(site, "digest")
    assert await fact(site, run.id, "Trace") == run.id.replace("-", "")


async def test_an_error_can_be_copied_and_its_stack_is_folded(site: Site) -> None:
    await site.make(name="digest", schedule_type="manual", max_retries=0)
    await site.call("POST", "/api/v2/jobs/digest/force-run")
    (run,) = await site.claim()
    await site.end(run, Failed(error="no", stack="Traceback"))
    page = await site.page(f"/ui/runs/{run.id}")
    assert '<details id="stack">' in page
    assert page.count(" data-copy>") == 2
