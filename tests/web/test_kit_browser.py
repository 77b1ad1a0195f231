"""What the kit gives every page, in a real browser: live regions, keys, the palette, dialogs."""

from __future__ import annotations

import re
from itertools import pairwise

from playwright.async_api import Page, expect

from tests.web.live import LiveSite
from tests.web.watching import Watched


async def test_a_change_appears_without_a_reload(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("kit-live-a")
    await browser_page.goto("/ui/jobs?q=kit-live")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    await browser_page.get_by_label("Select kit-live-a").check()
    live_site.make("kit-live-b")
    live_site.ask("POST", "/api/v2/jobs/kit-live-a/pause")
    await expect(browser_page.get_by_role("link", name="kit-live-b")).to_be_visible()
    row = browser_page.locator("tr", has_text="kit-live-a")
    await expect(row.get_by_text("paused", exact=True)).to_be_visible()
    await expect(browser_page.get_by_label("Select kit-live-a")).to_be_checked()


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


async def test_a_lost_connection_is_told_and_mended(browser_page: Page, live_site: LiveSite) -> None:
    await browser_page.route("**/api/events*", lambda route: route.abort())
    await browser_page.goto("/ui/jobs?q=kit-lost")
    await expect(browser_page.locator("#reconnecting")).to_contain_text("Reconnecting")
    live_site.make("kit-lost-a")
    await browser_page.unroute("**/api/events*")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    await expect(browser_page.locator("#reconnecting")).to_be_hidden()
    await expect(browser_page.get_by_role("link", name="kit-lost-a")).to_be_visible()  # made meanwhile


async def test_live_can_be_switched_off_and_on(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("kit-off-a")
    await browser_page.goto("/ui/jobs?q=kit-off")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    await browser_page.keyboard.press("r")
    await expect(browser_page.locator("#live")).to_have_attribute("aria-pressed", "false")
    live_site.make("kit-off-b")
    await browser_page.keyboard.press("r")  # what was missed is fetched now
    await expect(browser_page.get_by_role("link", name="kit-off-b")).to_be_visible()


async def test_rows_are_walked_selected_and_opened_by_keys(browser_page: Page, live_site: LiveSite) -> None:
    for name in ("kit-keys-a", "kit-keys-b"):
        live_site.make(name)
    await browser_page.goto("/ui/jobs?q=kit-keys")
    for key in ("j", "j", "k", "j", "x"):
        await browser_page.keyboard.press(key)
    await expect(browser_page.get_by_label("Select kit-keys-b")).to_be_checked()
    await expect(browser_page.locator("#selected")).to_have_text("1 selected:")
    await browser_page.keyboard.press("p")
    await expect(browser_page.get_by_role("status").get_by_text("1 job paused.")).to_be_visible()
    await browser_page.keyboard.press("j")
    await browser_page.keyboard.press("Enter")
    await expect(browser_page).to_have_url(re.compile("/ui/jobs/kit-keys-a"))


async def test_pages_are_reached_by_g(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    await browser_page.keyboard.press("g")
    await browser_page.keyboard.press("s")
    await expect(browser_page).to_have_url(re.compile("/ui/settings"))


async def test_keys_are_explained_and_can_be_switched_off(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    await browser_page.keyboard.press("?")
    dialog = browser_page.get_by_role("dialog", name="Keys")
    await expect(dialog).to_be_visible()
    await dialog.get_by_label("Use single keys").uncheck()
    await browser_page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await browser_page.keyboard.press("?")
    await browser_page.keyboard.press("/")
    await expect(dialog).to_be_hidden()
    await expect(browser_page.get_by_label("Search", exact=True)).not_to_be_focused()
    await browser_page.get_by_role("button", name="Keys ?").click()
    await dialog.get_by_label("Use single keys").check()
    await dialog.get_by_role("button", name="Close").click()
    await browser_page.keyboard.press("/")
    await expect(browser_page.get_by_label("Search", exact=True)).to_be_focused()


async def test_the_palette_finds_jobs_pages_and_actions(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make('kit-palette "odd" job')
    await browser_page.goto("/ui/jobs")
    await browser_page.keyboard.press("Control+k")
    box = browser_page.get_by_role("combobox", name="Job, page or action")
    await expect(box).to_be_focused()
    await expect(browser_page.get_by_role("option", name="Timeline")).to_be_visible()
    await box.fill("pause kit-palette")
    await browser_page.get_by_role("option", name="pause kit-palette").click()
    await expect(browser_page.get_by_role("status").get_by_text("1 job paused.")).to_be_visible()
    assert live_site.ask("GET", "/api/v2/jobs?q=kit-palette")["jobs"][0]["is_paused"]
    await browser_page.keyboard.press("Control+k")
    await box.fill('"odd"')
    await expect(browser_page.get_by_role("option", name="odd")).to_be_visible()
    await browser_page.keyboard.press("Enter")
    await expect(browser_page).to_have_url(re.compile("/ui/jobs/kit-palette"))


async def test_the_theme_and_the_zone_are_kept(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    await expect(browser_page.locator("footer")).to_contain_text("Europe/Berlin")
    await browser_page.keyboard.press("z")
    await expect(browser_page.locator("footer")).to_contain_text("Times in UTC")
    await browser_page.keyboard.press("t")
    await browser_page.keyboard.press("t")
    await browser_page.reload()
    await expect(browser_page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(browser_page.locator("footer")).to_contain_text("Times in UTC")


async def test_a_storm_of_events_costs_four_fetches_a_second(browser_page: Page, live_site: LiveSite) -> None:
    await browser_page.goto("/ui/jobs?q=kit-storm")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    for number in range(30):
        live_site.make(f"kit-storm-{number:02}")
    await expect(browser_page.get_by_text("1 to 30 of 30")).to_be_visible()
    began: list[float] = await browser_page.evaluate(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('q=kit-storm'))"
        ".map((one) => one.startTime)"
    )
    assert began
    gaps = [later - former for former, later in pairwise(began)]
    assert all(gap >= 240 for gap in gaps), gaps
