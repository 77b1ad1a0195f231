"""Pages start no more than programs may: both count together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from noonday.domain.rates import Rate
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.web.site import Site, browser_of, services_of


@pytest.fixture
async def slow(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Site]:
    services = replace(services_of(sqlite_db, clock), trigger_rate=Rate(calls=1))
    async with browser_of(services) as client:
        yield Site(client, sqlite_db, clock)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/ui/jobs/digest/run", {}),
        ("/ui/jobs/digest/retry", {}),
        ("/ui/runs/none/again", {}),
        ("/ui/triggers/fire", {"path": "/x"}),
        ("/ui/bulk", {"one": "run:none"}),
        ("/ui/bulk", {"action": "run", "every": "yes", "sure": "yes"}),
    ],
)
async def test_what_starts_something_is_counted(slow: Site, path: str, form: dict[str, Any]) -> None:
    await slow.make(name="digest", schedule_type="manual")
    assert (await slow.call("POST", "/api/v2/jobs/digest/force-run")).status_code == 202
    answer = await slow.send(path, form)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"
    assert "Too fast" in answer.text
    assert "try again in 60 s" in answer.text


async def test_what_starts_nothing_is_not(slow: Site) -> None:
    await slow.make(name="digest", schedule_type="manual")
    assert (await slow.call("POST", "/api/v2/jobs/digest/force-run")).status_code == 202
    for form in (
        {"action": "run", "every": "yes"},
        {"one": "pause:none"},
        {"action": "pause", "sure": "yes"},
    ):
        assert (await slow.send("/ui/bulk", form)).status_code != 429
    assert (await slow.send("/ui/jobs/digest/disable")).status_code == 303
