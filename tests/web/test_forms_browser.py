"""The form in a real browser: it explains while one types, and a mistake is where the eye is."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, Route, expect

from tests.web import axe
from tests.web.live import LiveSite
from tests.web.watching import Watched


async def test_it_explains_while_one_types(browser_page: Page) -> None:
    page = browser_page
    await page.goto("/ui/new")
    await expect(page.get_by_role("button", name="Preview")).to_have_count(0)
    await page.locator('label[for="f-schedule_type-cron"]').click()
    cron = page.get_by_label("Cron text")
    await cron.fill("30 6 * * 1-5")
    await expect(page.locator("#preview .words")).to_contain_text("06:30")
    await expect(page.locator("#preview tbody tr")).to_have_count(10)
    await expect(page.locator("#told")).to_contain_text("06:30")
    await cron.fill("30 66 * * 1-5")
    await expect(page.locator("#e-cron_expression")).to_contain_text("hour")
    await expect(page.locator("#cron-parts .bad")).to_contain_text("66 hour")
    await expect(cron).to_have_attribute("aria-invalid", "true")
    await expect(page.locator("#told")).to_contain_text("outside 0-23")
    await cron.fill("30 7 * * *")
    await expect(page.locator("#e-cron_expression")).to_be_hidden()
    await expect(page.locator("#cron-parts .bad")).to_have_count(0)
    await expect(cron).not_to_have_attribute("aria-invalid", "true")


async def test_the_last_answer_wins(browser_page: Page) -> None:
    page, held, let_go = browser_page, asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        if "interval_minutes=41" in (route.request.post_data or ""):
            held.set()
            await let_go.wait()
        await route.fallback()

    await page.route("**/ui/preview", slow)
    await page.goto("/ui/new")
    await page.get_by_label("Run it every").select_option("minutes")
    every = page.get_by_label("Every so many")
    await every.fill("41")
    await held.wait()
    await every.fill("42")
    await expect(page.locator("#preview .words")).to_contain_text("42 min")
    let_go.set()
    await every.fill("43")
    await expect(page.locator("#preview .words")).to_contain_text("43 min")


async def test_it_shows_only_what_belongs_to_the_choice(browser_page: Page) -> None:
    page = browser_page
    await page.goto("/ui/new")
    await expect(page.get_by_label("URL")).to_be_visible()
    await page.get_by_label("Command", exact=True).first.focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_label("URL")).to_be_hidden()
    await expect(page.locator("#f-argv")).to_be_visible()
    await page.get_by_label("Run it every").select_option("week")
    await expect(page.get_by_label("On", exact=True)).to_be_visible()
    await expect(page.get_by_label("On day")).to_be_hidden()
    await expect(page.locator("#preview .words")).to_contain_text("Monday")
    await page.locator("#f-schedule_type-cron").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_label("Every so many")).to_be_visible()
    await expect(page.get_by_label("At", exact=True).first).to_be_hidden()
    await expect(page.locator("#preview .words")).to_contain_text("15 min")


async def test_it_makes_and_changes_a_job(browser_page: Page, live_site: LiveSite) -> None:
    page = browser_page
    await page.goto("/ui/new")
    await page.get_by_label("Name", exact=True).fill("made-by-form")
    await page.locator('label[for="f-kind-command"]').click()
    await page.locator("#f-argv").fill("true")
    await page.locator('label[for="f-schedule_type-manual"]').click()
    await page.get_by_role("button", name="Create the job").click()
    await expect(page).to_have_url(f"{live_site.url}/ui/jobs/made-by-form")
    await page.goto("/ui/jobs/made-by-form/edit")
    await page.get_by_label("Retries").fill("7")
    await page.get_by_role("button", name="Review the change").click()
    await expect(page.locator("ins")).to_have_text("7")
    await page.get_by_role("button", name="Save the change").click()
    await expect(page).to_have_url(f"{live_site.url}/ui/jobs/made-by-form")
    assert live_site.ask("GET", "/api/v2/jobs/made-by-form")["max_retries"] == 7


async def test_it_leads_to_the_mistakes(browser_page: Page) -> None:
    page = browser_page
    await page.goto("/ui/new")
    await page.get_by_label("Description").fill("kept")
    await page.get_by_text("Details").click()
    await page.get_by_label("Config").fill("{")
    await page.get_by_role("button", name="Create the job").click()
    await expect(page.locator("#f-url")).to_be_focused()
    await expect(page.locator("#e-url")).to_be_visible()
    await expect(page.get_by_label("Description")).to_have_value("kept")
    await page.get_by_role("alert").get_by_role("link", name="config").click()
    await expect(page.get_by_label("Config")).to_be_focused()
    await expect(page.get_by_label("Config")).to_have_value("{")
    await page.locator('label[for="f-schedule_type-cron"]').click()
    await page.get_by_label("Cron text").fill("0 99 * * *")
    await expect(page.locator("#cron-parts .bad")).to_contain_text("99")
    await axe.load(page)
    assert await axe.judged(page) == []
    await page.emulate_media(color_scheme="dark")
    assert await axe.judged(page, axe.COLOURS) == []


async def test_it_works_without_a_script(watched: Watched) -> None:
    page = await watched.open("/ui/new", scripts=False)
    await page.get_by_label("At", exact=True).first.fill("05:00")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("#preview .words")).to_contain_text("05:00")
    await expect(page.get_by_label("At", exact=True).first).to_have_value("05:00")
    await page.get_by_role("button", name="Create the job").click()
    await expect(page.locator("#f-url")).to_be_focused()
