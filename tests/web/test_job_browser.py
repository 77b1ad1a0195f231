"""A job's page in a real browser: with the mouse, with the keyboard alone, and live."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.web import axe
from tests.web.live import LiveSite

HOURLY = {"cron_expression": "0 * * * *", "target": {"type": "command", "argv": ["true"]}}


async def test_somebody_pauses_until_later_and_resumes(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("browser-pause", **HOURLY)
    page = browser_page
    await page.goto("/ui/jobs/browser-pause")
    await axe.load(page)
    await page.locator("#more-acts summary").click()
    assert await axe.judged(page) == []
    await page.get_by_text("Pause until").click()
    await expect(page.locator("#more-acts")).not_to_have_attribute("open", "")
    assert await axe.judged(page) == []
    await page.get_by_role("button", name="until tomorrow 09:00").click()
    await expect(page.get_by_text("browser-pause is paused until")).to_be_visible()
    await expect(page.get_by_text("It is paused, and goes on by itself")).to_be_visible()
    await page.locator("h1").click()
    await page.keyboard.press("p")
    await expect(page.get_by_text("It runs next")).to_be_visible()


async def test_the_page_follows_what_happens_elsewhere(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("browser-live", **HOURLY)
    page = browser_page
    await page.goto("/ui/jobs/browser-live")
    await expect(page.get_by_role("button", name="Live")).to_have_attribute("data-state", "live")
    live_site.ask("POST", "/api/v2/jobs/browser-live/disable")
    await expect(page.locator(".why")).to_contain_text("It is switched off")
    more = page.locator("#more-acts")
    await more.locator("summary").click()
    await expect(page.get_by_role("button", name="Switch the schedule on")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(more).not_to_have_attribute("open", "")
    await expect(more.locator("summary")).to_be_focused()


async def test_a_change_is_taken_back_from_its_diff(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("browser-revert", description="as it was", **HOURLY)
    live_site.ask("PATCH", "/api/v2/jobs/browser-revert", {"description": "a mistake"})
    page = browser_page
    await page.goto("/ui/jobs/browser-revert/history")
    await page.get_by_role("link", name="Back to revision 1").click()
    await expect(page.locator("ins")).to_have_text("as it was")
    await page.get_by_role("button", name="Go back to revision 1").click()
    await expect(page.locator(".about")).to_have_text("as it was")
