"""`Prefer: wait`: 200 with how the run ended, or 202 when the caller's patience is over."""

from __future__ import annotations

import asyncio

import pytest
from httpx2 import ASGITransport, AsyncClient, Response
from hypothesis import given
from hypothesis import strategies as st

from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.api.waiting import LONGEST, wished
from noonday.domain.execution import Execution
from noonday.domain.outcome import Cancelled, Completed, Failed, Outcome
from tests.api.caller import Api
from tests.api.until import eventually

RUN = "/api/v2/jobs/manual/force-run"


async def begun(api: Api) -> Execution:
    """The run that somebody waits for, claimed as a worker would."""
    return (await eventually(api.claim))[0]


async def waited_for(api: Api, path: str, prefer: str, outcome: Outcome) -> Response:
    calling = asyncio.create_task(api.call("POST", path, headers={"Prefer": prefer}))
    run = await begun(api)
    assert not calling.done()
    await api.end(run, outcome)
    return await calling


@pytest.mark.parametrize(
    ("outcome", "status"), [(Completed(), "completed"), (Failed(error="no"), "failed")], ids=str
)
async def test_it_answers_with_the_end_of_the_run(api: Api, outcome: Outcome, status: str) -> None:
    await api.make(name="manual", schedule_type="manual", max_retries=0)
    answer = await waited_for(api, RUN, "wait=30", outcome)
    assert (answer.status_code, answer.json()["status"]) == (200, status)
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert answer.headers["Location"] == f"/api/v2/executions/{answer.json()['id']}"


async def test_it_waits_for_a_retry_and_for_at_most_a_minute(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual", max_retries=0)
    await waited_for(api, RUN, "wait=30", Failed(error="no"))
    answer = await waited_for(api, "/api/v2/jobs/manual/retry", 'respond-async, Wait="999"', Completed())
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert answer.headers["Preference-Applied"] == "wait=60"


async def test_it_waits_through_the_retries_of_a_run(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual", max_retries=1, retry_backoff_seconds=1)
    calling = asyncio.create_task(api.call("POST", RUN, headers={"Prefer": "wait=30"}))
    await api.end(await begun(api), Failed(error="no"))
    api.clock.advance(seconds=2)
    await api.end(await begun(api), Completed())
    answer = await calling
    assert (answer.status_code, answer.json()["status"], answer.json()["attempt"]) == (200, "completed", 2)


async def test_it_counts_a_cancelled_run_as_ended(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual")
    answer = await waited_for(api, RUN, "wait=30", Cancelled(by="ada"))
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")


async def test_it_says_202_when_the_patience_is_over(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual")
    answer = await api.call("POST", RUN, headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert answer.json().keys() == {"message", "job_id", "execution_id"}
    assert "Preference-Applied" not in answer.headers


async def test_it_waits_for_nobody_who_does_not_ask(sqlite_api: Api) -> None:
    await sqlite_api.make(name="manual", schedule_type="manual", overlap="allow")
    async with asyncio.timeout(5):
        for prefer in ("respond-async", "wait", "wait=-1", "wait=x", "waits=10", "wait=0"):
            assert (await sqlite_api.call("POST", RUN, headers={"Prefer": prefer})).status_code == 202


async def test_it_holds_nobody_back_when_the_server_ends(services: ApiServices) -> None:
    app = create_app(services)
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        await client.post(
            "/api/v2/jobs", json={"name": "manual", "url": "http://x", "schedule_type": "manual"}
        )
        calling = asyncio.create_task(client.post(RUN, headers={"Prefer": "wait=60"}))
        ends = app.state.services.ends
        await eventually(lambda: ends._waiting)
        app.state.services.close()
        async with asyncio.timeout(5):
            assert (await calling).status_code == 202
        assert not ends._waiting


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("wait=10", 10),
        (" WAIT = 10 ", 10),
        ("respond-async,wait=5", 5),
        ('wait="5"; foo=bar', 5),
        ("wait=5, wait=10", 5),
        ("wait=100", LONGEST),
        ("wait=" + "9" * 50, 0),
        ("wait=1.5", 0),
        ("wait=\u0663", 0),
    ],
)
def test_it_reads_the_wish(prefer: str | None, seconds: int) -> None:
    assert wished(prefer) == seconds


@given(st.text() | st.from_regex(r"[wait=0-9;, \"]*"))
def test_it_understands_or_leaves_alone_whatever_is_sent(prefer: str) -> None:
    assert 0 <= wished(prefer) <= LONGEST
