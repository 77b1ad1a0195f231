"""The list of jobs in a real browser: found while typing, ticked, and acted on."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.web.live import LiveSite
from tests.web.watching import PHONE, Watched


async def test_the_list_follows_what_is_typed(browser_page: Page, live_site: LiveSite) -> None:
    for name in ("list-type-a", "list-type-b"):
        live_site.make(name)
    await browser_page.goto("/ui/jobs")
    search = browser_page.get_by_label("Search", exact=True)
    await search.fill("list-type-b")
    await expect(browser_page.locator(".found")).to_have_text(re.compile("^1 of "))
    await expect(browser_page).to_have_url(re.compile(r"\?q=list-type-b$"))
    await expect(search).to_be_focused()
    await search.fill("colour:red")
    await expect(browser_page.locator("#wrong")).to_contain_text("names no field")
    await expect(browser_page.get_by_role("link", name="list-type-b")).to_be_visible()  # until it is right


async def test_a_search_is_kept_here_found_by_back_and_forgotten(
    browser_page: Page, live_site: LiveSite
) -> None:
    for name in ("list-kept-a", "list-kept-b"):
        live_site.make(name)
    await browser_page.goto("/ui/jobs?sort=-name")
    search = browser_page.get_by_label("Search", exact=True)
    await search.fill("list-kept")
    await expect(browser_page.locator(".found")).to_have_text(re.compile("^2 of "))
    menu = browser_page.locator("#searches")
    await menu.locator("summary").click()
    await menu.get_by_label("Name of this search").fill("mine <b>")
    await menu.get_by_role("button", name="Keep it").click()
    await expect(menu.get_by_role("link", name="mine <b>")).to_be_visible()
    await browser_page.get_by_role("link", name="list-kept-b").click()
    await browser_page.wait_for_url("**/ui/jobs/list-kept-b")
    await browser_page.go_back()
    await expect(search).to_have_value("list-kept")
    await expect(browser_page.locator("[data-row]")).to_have_count(2)
    await browser_page.goto("/ui/jobs")
    await menu.locator("summary").click()
    await menu.get_by_role("link", name="mine <b>").click()
    await browser_page.wait_for_url("**/ui/jobs?sort=-name&q=list-kept")
    await menu.locator("summary").click()
    await menu.get_by_role("button", name="Forget mine <b>").click()
    await expect(menu.get_by_role("link", name="mine <b>")).to_have_count(0)
    await browser_page.goto("/ui/runs?q=list-kept")
    await menu.locator("summary").click()
    await expect(menu.get_by_role("link", name="mine <b>")).to_have_count(0)  # each list has its own


async def test_a_range_is_ticked_and_paused_after_a_look(browser_page: Page, live_site: LiveSite) -> None:
    for name in ("list-range-a", "list-range-b", "list-range-c"):
        live_site.make(name)
    await browser_page.goto("/ui/jobs?q=list-range")
    await expect(browser_page.get_by_role("button", name="Pause", exact=True)).to_be_disabled()
    await browser_page.get_by_label("Select list-range-a").check()
    await browser_page.get_by_label("Select list-range-c").click(modifiers=["Shift"])
    await expect(browser_page.locator("#selected")).to_have_text("3 selected:")
    await browser_page.get_by_label("Select list-range-b").uncheck()
    await browser_page.get_by_role("button", name="Pause", exact=True).click()
    await expect(browser_page.get_by_role("heading", name="Pause 2 jobs?")).to_be_visible()
    await browser_page.get_by_role("button", name="Pause 2 jobs").click()
    await expect(browser_page.get_by_text("2 jobs paused.")).to_be_visible()
    paused = live_site.ask("GET", "/api/v2/jobs?q=list-range%20paused:yes")["jobs"]
    assert {job["name"] for job in paused} == {"list-range-a", "list-range-c"}


async def test_everything_works_without_scripts(watched: Watched, live_site: LiveSite) -> None:
    live_site.make("list-plain", tags=["list-plain-tag"])
    page = await watched.open("/ui/jobs", scripts=False, size=PHONE)
    await page.get_by_label("Search", exact=True).fill("list-plain")
    await page.get_by_role("button", name="Find", exact=True).click()
    await page.get_by_role("link", name="list-plain-tag").first.click()
    await expect(page).to_have_url(re.compile("tag%3Alist-plain-tag"))
    await page.get_by_label("Select list-plain").check()
    await page.get_by_role("button", name="Disable", exact=True).click()
    await page.get_by_role("button", name="Disable 1 job").click()
    await expect(page.get_by_text("1 job switched off.")).to_be_visible()
    await expect(page.locator("table.jobs").get_by_text("disabled")).to_be_visible()


async def test_nothing_is_lost_on_a_phone(watched: Watched) -> None:
    page = await watched.open("/ui/jobs?q=import-orders", size=PHONE)
    row = page.locator("[data-row]").first
    for part in (".now", ".next", ".last", ".rate", ".strip", ".do button"):
        await expect(row.locator(part).first).to_be_visible()
    await page.goto("/ui/runs?q=status:failed")
    row = page.locator("[data-row]").first
    for part in (".now", "time", ".why"):
        await expect(row.locator(part).first).to_be_visible()
    sideways = "[...document.querySelectorAll('.scroll')].some((one) => one.scrollWidth > one.clientWidth)"
    assert not await page.evaluate(sideways)
    watched.assert_clean()
