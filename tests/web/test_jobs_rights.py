"""The list of jobs shows and does what its reader may."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noonday.domain.access import Role
from noonday.domain.target import ServiceTarget
from noonday.store import jobs
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.factories import a_job
from tests.web.signing_in import ClosedSite, closed_site

MAIL = a_job(name="mail-digest", tags=("mail",), target=ServiceTarget(service="mail", endpoint="/digest"))
SHOP = a_job(name="shop-import", tags=("shop",))


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    sqlite_db.write_now(lambda conn: [jobs.add(conn, job) for job in (MAIL, SHOP)])
    async with closed_site(sqlite_db, clock) as site:
        yield site


async def test_a_viewer_sees_all_and_changes_nothing(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    page = await closed.page("/ui/jobs")
    assert "mail-digest" in page
    assert "shop-import" in page
    assert 'name="action"' not in page
    assert 'name="one"' not in page
    assert "New job" not in page
    answer = await closed.send("/ui/bulk", {"action": "pause", "job": [MAIL.id], "sure": "yes"})
    assert answer.status_code == 403
    assert not (await closed.stored(MAIL.id)).paused


async def test_a_service_sees_and_runs_its_own_alone(closed: ClosedSite) -> None:
    await closed.as_a(Role.SERVICE, "mail")
    page = await closed.page("/ui/jobs")
    assert "mail-digest" in page
    assert "shop" not in page  # neither the job nor its tag
    assert ">1 job</p>" in page
    assert 'value="delete"' not in page
    answer = await closed.send("/ui/bulk", {"action": "delete", "job": [MAIL.id], "sure": "yes"})
    assert answer.status_code == 403
    _, note = await closed.obeyed("/ui/bulk", {"one": f"run:{SHOP.id}", "from": "list"})
    assert "there is no job" in note
    _, note = await closed.obeyed("/ui/bulk", {"one": f"run:{MAIL.id}", "from": "list"})
    assert note == "1 job started."
    assert [run.job_id for run in await closed.claim()] == [MAIL.id]


async def test_an_operator_may_delete(closed: ClosedSite) -> None:
    await closed.as_a(Role.OPERATOR)
    form = {"action": "delete", "every": "yes", "q": "shop"}
    assert "Delete 1 job?" in (await closed.send("/ui/bulk", form)).text
    _, note = await closed.obeyed("/ui/bulk", form | {"sure": "yes", "expect": "1"})
    assert note == "1 job deleted."
