"""Sites and browsers. Tests with a browser run in the loop of the whole session, where the browser lives."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.web import chromium
from tests.web.live import LiveSite, filled, live
from tests.web.signing_in import ClosedSite, closed_site
from tests.web.site import Site, browser_of, services_of
from tests.web.watching import Watched

_OF_BROWSERS = {"browser"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and _OF_BROWSERS & set(item.fixturenames):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def site(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Site]:
    """API and pages, where the database makes no difference."""
    async with browser_of(services_of(sqlite_db, clock)) as client:
        yield Site(client, sqlite_db, clock)


@pytest.fixture
async def any_site(db: Database, clock: StillClock) -> AsyncIterator[Site]:
    """API and pages, once on SQLite and once on PostgreSQL."""
    async with browser_of(services_of(db, clock)) as client:
        yield Site(client, db, clock)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def demo_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where nothing runs; one for all processes of a run of tests."""
    folder = tmp_path_factory.getbasetemp()
    return await filled(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    """Where people sign in, and the database makes no difference."""
    async with closed_site(sqlite_db, clock) as site:
        yield site


@pytest.fixture
async def any_closed(db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    """Where people sign in, once on SQLite and once on PostgreSQL."""
    async with closed_site(db, clock) as site:
        yield site


@pytest.fixture(scope="session")
def live_site(demo_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    """A real server with the demonstration's jobs and history; all tests share it, so take jobs of your own
    for what you change."""
    with live(tmp_path_factory.mktemp("live"), demo_database) as made:
        yield made


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """No browser is a failure in CI; elsewhere it says plainly what did not run."""
    try:
        return chromium.find()
    except chromium.NoChromium as exc:
        if os.environ.get("CI"):
            pytest.fail(str(exc), pytrace=False)
        pytest.skip(f"not run: {exc}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    home = chromium.home_of(tmp_path_factory.mktemp("home"))
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(
            executable_path=chromium_path, args=list(chromium.SWITCHES), env={**home}
        )
        yield made
        await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def watched(browser: Browser, live_site: LiveSite) -> AsyncIterator[Watched]:
    """A browser without a past, for a test to open pages in any theme and size."""
    made = Watched(browser, live_site.url)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser_page(watched: Watched) -> AsyncIterator[Page]:
    """One page at the live site (`goto("/ui/jobs")`); at the end nothing may have gone wrong in it."""
    yield await watched.open()
    watched.assert_clean()
