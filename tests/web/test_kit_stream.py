"""The stream of events: nothing between a page and its stream is missed, tabs share it, and it comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from noonday.api.app import create_app
from noonday.clock import SystemClock
from noonday.instance.server import Server
from noonday.instance.sockets import bind
from noonday.store.database import Database
from noonday.web import routes
from noonday.web.pages import LIVE, NOTE_COOKIE
from tests.api.caller import StillClock
from tests.servers import free_port
from tests.web.live import LiveSite
from tests.web.site import Site, browser_of, services_of
from tests.web.watching import Watched

_STREAM = "**/api/events*"


async def test_a_page_says_up_to_which_event_it_knows(site: Site) -> None:
    assert 'data-position="0"' in await site.page("/ui/jobs")
    await site.make(name="nightly")
    assert 'data-position="1"' in await site.page("/ui/jobs")


async def test_without_events_there_is_no_position(sqlite_db: Database, clock: StillClock) -> None:
    async with browser_of(replace(services_of(sqlite_db, clock), events_kept=0)) as client:
        page = await Site(client, sqlite_db, clock).page("/ui/jobs")
    assert "data-position" not in page


async def test_a_page_that_brings_itself_up_to_date_takes_no_note(site: Site) -> None:
    """The note is for the page that the reader is led to, not for another tab that hears of the change."""
    job = await site.make(name="nightly")
    await site.obeyed("/ui/bulk", {"one": f"pause:{job['id']}", "from": "list"})
    live = await site.client.get("/ui/jobs", headers={"Accept": "text/html", LIVE: "yes"})
    assert "1 job paused." not in live.text
    assert NOTE_COOKIE not in live.headers.get("set-cookie", "")
    assert "1 job paused." in await site.page("/ui/jobs")
    assert "1 job paused." not in await site.page("/ui/jobs")


async def test_what_happens_before_the_stream_is_read_is_not_missed(
    browser_page: Page, live_site: LiveSite
) -> None:
    go, asked = asyncio.Event(), asyncio.Event()
    addresses: list[str] = []

    async def hold(route: Route) -> None:
        addresses.append(route.request.url)
        asked.set()
        await go.wait()
        await route.continue_()

    await browser_page.route(_STREAM, hold)
    await browser_page.goto("/ui/jobs?q=stream-gap")
    position = await browser_page.locator("html").get_attribute("data-position")
    await asyncio.wait_for(asked.wait(), 5)
    live_site.make("stream-gap")
    go.set()
    await expect(browser_page.get_by_role("link", name="stream-gap")).to_be_visible()
    assert parse_qs(urlsplit(addresses[0]).query)["last_event_id"] == [position]
    await browser_page.unroute_all(behavior="ignoreErrors")


async def test_many_tabs_share_one_stream(watched: Watched, live_site: LiveSite) -> None:
    first = await watched.open()
    streams: list[str] = []
    first.context.on("request", lambda one: streams.append(one.url) if "/api/events" in one.url else None)
    await first.goto("/ui/jobs?q=kit-tabs")
    await expect(first.locator("#live")).to_have_attribute("data-state", "live")
    second = await first.context.new_page()
    await second.goto("/ui/jobs?q=kit-tabs")
    await expect(second.locator("#live")).to_have_attribute("data-state", "live")
    assert len(streams) == 1
    live_site.make("kit-tabs-a")
    await expect(second.get_by_role("link", name="kit-tabs-a")).to_be_visible()
    await first.close()  # the one that read the stream
    live_site.make("kit-tabs-b")
    await expect(second.get_by_role("link", name="kit-tabs-b")).to_be_visible()
    assert len(streams) == 2
    watched.assert_clean()


async def test_a_tab_that_missed_an_event_reads_again(browser_page: Page, live_site: LiveSite) -> None:
    """Told by another tab of an event far behind what it knows itself."""
    await browser_page.route(_STREAM, lambda route: route.abort())
    await browser_page.goto("/ui/jobs?q=stream-missed")
    live_site.make("stream-missed")
    await expect(browser_page.locator("#reconnecting")).to_be_visible()
    await browser_page.evaluate(
        "new BroadcastChannel('noonday-live').postMessage("
        "{kind: 'part', before: '99999999', last: '99999999', state: 'live'})"
    )
    await expect(browser_page.get_by_role("link", name="stream-missed")).to_be_visible()
    await browser_page.unroute_all(behavior="ignoreErrors")


async def test_without_locks_a_tab_reads_for_itself(browser_page: Page, live_site: LiveSite) -> None:
    await browser_page.add_init_script("delete Navigator.prototype.locks")  # as on plain http
    await browser_page.goto("/ui/jobs?q=stream-alone")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    live_site.make("stream-alone")
    await expect(browser_page.get_by_role("link", name="stream-alone")).to_be_visible()


class OwnServer:
    """A server of one test alone, which can be stopped and started again on its port and its database."""

    def __init__(self, db: Database, events_kept: int = 10_000) -> None:
        given = services_of(db, StillClock())
        self._services = replace(given, clock=SystemClock(), events_kept=events_kept)
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        self.app = create_app(self._services)
        routes.install(self.app)
        self._server = Server(self.app, grace=timedelta())
        self._serving = asyncio.create_task(self._server.serve([bind("127.0.0.1", self._port)]))
        await self._server.ready.wait()

    async def stop(self) -> None:
        self.app.state.services.close()
        self._server.should_exit = True
        await self._serving


@pytest_asyncio.fixture(loop_scope="session", params=[10_000])
async def own_server(sqlite_db: Database, request: pytest.FixtureRequest) -> AsyncIterator[OwnServer]:
    server = OwnServer(sqlite_db, events_kept=request.param)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def own_page(browser: Browser, own_server: OwnServer) -> AsyncIterator[Page]:
    watched = Watched(browser, own_server.url)
    yield await watched.open()
    await watched.close()


async def made(page: Page, name: str) -> None:
    body = {"name": name, "schedule_type": "manual", "url": "http://localhost/"}
    assert (await page.request.post("/api/v2/jobs", data=body)).status == 201


@pytest.mark.parametrize("own_server", [0], indirect=True)
async def test_where_no_events_are_kept_a_page_looks_again_by_itself(own_page: Page) -> None:
    await own_page.clock.install()
    await own_page.goto("/ui/jobs")
    await expect(own_page.locator("#live")).to_have_attribute("data-state", "live")
    await made(own_page, "polled")
    await own_page.clock.run_for(16_000)
    await expect(own_page.get_by_role("link", name="polled", exact=True)).to_be_visible()


async def test_a_restarted_server_is_found_again(own_page: Page, own_server: OwnServer) -> None:
    await own_page.goto("/ui/jobs")
    await expect(own_page.locator("#live")).to_have_attribute("data-state", "live")
    await own_server.stop()
    await expect(own_page.locator("#reconnecting")).to_contain_text("Reconnecting")
    await own_server.start()
    await made(own_page, "after")
    await expect(own_page.get_by_role("link", name="after", exact=True)).to_be_visible(timeout=15_000)
    await expect(own_page.locator("#reconnecting")).to_be_hidden()


async def test_copying_needs_no_https(own_page: Page) -> None:
    await own_page.add_init_script("delete Navigator.prototype.clipboard")  # as on plain http
    await own_page.goto("/ui/jobs")
    await own_page.get_by_role("button", name="Copy").first.click()
    await expect(own_page.get_by_role("button", name="Copied").first).to_be_visible()
    search = own_page.get_by_label("Search", exact=True)
    await search.press("Control+V")
    await expect(search).to_have_value(re.compile("^curl -s http"))
