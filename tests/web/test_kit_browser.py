"""What the kit gives every page, in a real browser: live regions, keys, the palette, dialogs."""

from __future__ import annotations

import re
from itertools import pairwise

from playwright.async_api import Page, expect

from tests.web import axe
from tests.web.live import LiveSite


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
    await browser_page.keyboard.press("q")
    await expect(browser_page).to_have_url(re.compile("/ui/workers#lanes"))
    await browser_page.keyboard.press("g")
    await browser_page.keyboard.press("j")
    await expect(browser_page).to_have_url(re.compile("/ui/jobs"))


async def test_the_help_lists_what_works_here_and_no_more(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("kit-help")
    await browser_page.goto("/ui/jobs?q=kit-help")
    caps = browser_page.locator("#help tbody tr").locator("td:first-child")
    await browser_page.keyboard.press("?")
    listed = [(await one.inner_text()).strip() for one in await caps.all()]
    single = ["?", "/", "j", "k", "x", "Enter", ".", "p", "n", "r", "t", "z", "g"]
    pages = [f"g {key}" for key in "ojrtlcwgbasq"]
    assert listed == ["Ctrl K", *single, *pages]
    await browser_page.goto("/ui/settings")
    await browser_page.keyboard.press("?")
    await expect(browser_page.get_by_role("dialog", name="Keys")).to_be_visible()
    listed = [(await one.inner_text()).strip() for one in await caps.all()]
    assert listed == ["Ctrl K", "?", "n", "r", "t", "z", "g", *pages]


async def test_keys_can_be_switched_off_and_are_silent_in_fields(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    search = browser_page.get_by_label("Search", exact=True)
    await search.press_sequentially("?xtzjr.")
    await expect(search).to_have_value("?xtzjr.")
    await expect(browser_page.locator("html")).to_have_attribute("data-theme", "auto")
    await search.blur()
    for _ in range(3):
        await browser_page.keyboard.down("t")  # held down, it counts once
    await browser_page.keyboard.up("t")
    await expect(browser_page.locator("html")).to_have_attribute("data-theme", "light")
    await browser_page.keyboard.press("?")
    dialog = browser_page.get_by_role("dialog", name="Keys")
    await dialog.get_by_label("Use single keys").uncheck()
    await expect(dialog.locator("tbody tr")).to_have_count(1)
    await browser_page.keyboard.press("Escape")
    for key in ("?", "/", "t"):
        await browser_page.keyboard.press(key)
    await expect(dialog).to_be_hidden()
    await expect(search).not_to_be_focused()
    await expect(browser_page.locator("html")).to_have_attribute("data-theme", "light")
    await browser_page.get_by_role("button", name="Keys ?").click()
    await dialog.get_by_label("Use single keys").check()
    await dialog.get_by_role("button", name="Close").click()
    await browser_page.keyboard.press("/")
    await expect(search).to_be_focused()


async def test_a_note_outlives_the_first_look_at_the_zone(browser_page: Page, live_site: LiveSite) -> None:
    job = live_site.make("kit-note")
    await browser_page.goto("/ui/jobs?q=kit-note")
    await browser_page.context.clear_cookies(name="noonday_zone")
    await browser_page.get_by_role("button", name="Pause kit-note").click()
    await expect(browser_page.locator("footer")).to_contain_text("Europe/Berlin")
    await expect(browser_page.get_by_role("status").get_by_text("1 job paused.")).to_be_visible()
    await browser_page.reload()
    await expect(browser_page.locator("#note")).to_be_hidden()
    assert live_site.ask("GET", f"/api/v2/jobs/{job['id']}")["is_paused"]


async def test_the_answer_to_a_form_is_not_sent_again_for_another_zone(
    browser_page: Page, live_site: LiveSite
) -> None:
    live_site.make("kit-posted")
    await browser_page.goto("/ui/jobs?q=kit-posted")
    await browser_page.get_by_label("Select kit-posted").check()
    await browser_page.get_by_role("button", name="Pause", exact=True).click()
    await expect(browser_page.get_by_role("heading", name="Pause 1 job?")).to_be_visible()
    await browser_page.keyboard.press("z")
    await expect(browser_page.locator("#said")).to_have_text("Times in UTC from the next page on")
    await expect(browser_page.locator("footer")).to_contain_text("Europe/Berlin")


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


async def test_menus_and_dialogs_are_for_everybody_too(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs?q=tag:shop")
    await axe.load(browser_page)
    await browser_page.locator("#searches summary").click()
    assert await axe.judged(browser_page) == []
    await browser_page.keyboard.press("Escape")
    await browser_page.keyboard.press("?")
    assert await axe.judged(browser_page) == []
    await browser_page.keyboard.press("Escape")
    await browser_page.keyboard.press("Control+k")
    await expect(browser_page.get_by_role("option", name="Jobs page")).to_be_visible()
    assert await axe.judged(browser_page) == []


async def test_the_theme_and_the_zone_are_kept(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    await expect(browser_page.locator("footer")).to_contain_text("Europe/Berlin")
    async with browser_page.expect_navigation():
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
    await expect(browser_page.locator(".found")).to_have_text(re.compile("^30 of "))
    began: list[float] = await browser_page.evaluate(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('q=kit-storm'))"
        ".map((one) => one.startTime)"
    )
    assert began
    gaps = [later - former for former, later in pairwise(began)]
    assert all(gap >= 240 for gap in gaps), gaps
