"""`If-Match` on what is done with a job: nobody acts on a job that is not the one they saw."""

from __future__ import annotations

import pytest

from tests.api.caller import Api

VERBS = ("pause", "resume", "cancel", "enable", "disable")


async def ready_for(api: Api, verb: str) -> str:
    """A job with which this may be done; its ETag."""
    await api.make(name="hourly")
    before = {"resume": "pause", "enable": "disable"}.get(verb)
    if before is not None:
        await api.call("POST", f"/api/v2/jobs/hourly/{before}")
    return (await api.call("GET", "/api/v2/jobs/hourly")).headers["ETag"]


@pytest.mark.parametrize("verb", VERBS)
async def test_it_refuses_to_act_on_a_job_that_was_changed(api: Api, verb: str) -> None:
    seen = await ready_for(api, verb)
    await api.call("PUT", "/api/v2/jobs/hourly", {"priority": 1})
    before = await api.get("/api/v2/jobs/hourly")
    answer = await api.call("POST", f"/api/v2/jobs/hourly/{verb}", headers={"If-Match": seen})
    assert (answer.status_code, answer.json()["type"]) == (412, "urn:noonday:problem:outdated")
    assert await api.get("/api/v2/jobs/hourly") == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", ["{}", "W/{}", "*"])
async def test_it_acts_on_the_job_that_was_seen(sqlite_api: Api, verb: str, form: str) -> None:
    seen = await ready_for(sqlite_api, verb)
    headers = {"If-Match": form.format(seen)}
    answer = await sqlite_api.call("POST", f"/api/v2/jobs/hourly/{verb}", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["ETag"] == f'"{answer.json()["revision"]}"' != seen


@pytest.mark.parametrize("verb", VERBS)
async def test_it_refuses_what_is_no_etag(sqlite_api: Api, verb: str) -> None:
    await ready_for(sqlite_api, verb)
    answer = await sqlite_api.call("POST", f"/api/v2/jobs/hourly/{verb}", headers={"If-Match": "yesterday's"})
    assert answer.status_code == 412
