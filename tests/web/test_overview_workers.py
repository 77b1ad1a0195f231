"""`/ui/workers`: instances, slots and lanes; draining, resuming, and moving jobs to the other engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noonday.domain.access import Role
from noonday.store import audit, instances
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.control.peers import an_instance, elect, enter
from tests.web.signing_in import ClosedSite, closed_site
from tests.web.site import Site

HOME = "/ui/workers"


async def wanted(site: Site, name: str) -> str:
    return await site.db.read(lambda conn: instances.wanted(conn, name))


async def test_it_shows_who_is_there_and_who_leads(site: Site) -> None:
    await enter(site.db, an_instance("one", version="1.0"), an_instance("two", "api"))
    await elect(site.db, "one")
    await site.make(name="hot", priority=1)
    await site.call("POST", "/api/v2/jobs/hot/force-run")
    site.clock.advance(seconds=20)
    text = await site.page(HOME)
    assert "one leads in term 1" in text
    assert "0 of 10 busy" in text
    assert "no worker" in text
    assert 'priority:high">1</a></td>' in text
    assert "20 s ago" in text


async def test_without_a_leader_it_says_so(site: Site) -> None:
    assert "Nobody leads" in await site.page(HOME)


async def test_one_is_drained_and_resumed(site: Site) -> None:
    await enter(site.db, an_instance("one"), an_instance("two"))
    where, note = await site.obeyed(f"{HOME}/drain", {"instance": "two"})
    assert (where, note) == (HOME, "The workers of two finish what they run and take nothing new.")
    assert [await wanted(site, name) for name in ("one", "two")] == ["running", "draining"]
    text = await site.page(HOME)
    assert "Resume two" in text
    assert "Drain one" in text
    await site.obeyed(f"{HOME}/resume", {"instance": "two"})
    assert await wanted(site, "two") == "running"
    trail = await site.db.read(lambda conn: audit.page(conn, "two"))
    assert {(entry.action, entry.actor) for entry in trail.items} == {
        ("drain", "anonymous"),
        ("resume", "anonymous"),
    }


async def test_all_are_drained_after_a_question(site: Site) -> None:
    await enter(site.db, an_instance("one"), an_instance("two"))
    assert "2 instances finish" in await site.page(f"{HOME}/drain")
    assert [await wanted(site, name) for name in ("one", "two")] == ["running", "running"]
    await site.obeyed(f"{HOME}/drain")
    assert [await wanted(site, name) for name in ("one", "two")] == ["draining", "draining"]
    await site.obeyed(f"{HOME}/resume")
    assert [await wanted(site, name) for name in ("one", "two")] == ["running", "running"]


async def test_one_that_is_not_there_is_not_found(site: Site) -> None:
    assert (await site.send(f"{HOME}/drain", {"instance": "nobody"})).status_code == 404


async def test_jobs_move_after_a_preview(site: Site) -> None:
    await site.make(name="old-crawl", tags=["night"], scheduler_version=1)
    await site.make(name="other", scheduler_version=1)
    form = {"which": "tag", "tag": "night", "to": "2"}
    shown = await site.send(f"{HOME}/move", form)
    assert shown.status_code == 200
    assert "1 job would move to version 2" in shown.text
    assert (await site.stored("old-crawl")).scheduler_version == 1
    where, note = await site.obeyed(f"{HOME}/move", form | {"sure": "yes"})
    assert (where, note) == (f"{HOME}#engines", "1 job moved to version 2.")
    assert (await site.stored("old-crawl")).scheduler_version == 2
    assert (await site.stored("other")).scheduler_version == 1


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"which": "tag", "to": "2"}, "tag", "write the tag"),
        ({"which": "jobs", "to": "2"}, "jobs", "name at least one job"),
        ({"which": "jobs", "jobs": "nobody", "to": "2"}, "jobs", "nobody"),
        ({"which": "all", "to": "3"}, "to", "neither version 1 nor 2"),
    ],
    ids=["no tag", "no name", "no such job", "no engine"],
)
async def test_a_move_that_means_nothing_is_told_at_its_field(
    site: Site, form: dict[str, str], field: str, words: str
) -> None:
    answer = await site.send(f"{HOME}/move", form)
    assert answer.status_code == 422
    assert words in answer.text.split(f'id="{field}-wrong">')[1].split("</p>")[0]
    assert form.get("jobs", "") in answer.text


async def test_an_engine_is_named_by_its_jobs(site: Site) -> None:
    await site.make(name="one", scheduler_version=1)
    text = await site.page(HOME, params={"hours": "24"})
    assert 'version:1">1</a>' in text
    assert "In the last 1 d" in text


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    async with closed_site(sqlite_db, clock) as made:
        yield made


async def test_an_operator_looks_but_does_not_drain(closed: ClosedSite) -> None:
    await enter(closed.db, an_instance("one"))
    await closed.as_a(Role.OPERATOR)
    assert "<button>Drain" not in await closed.page(HOME)
    for action in ("drain", "resume", "move"):
        assert (await closed.send(f"{HOME}/{action}")).status_code == 403
