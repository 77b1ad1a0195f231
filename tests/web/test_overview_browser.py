"""The overview and the pages of operations in a real browser: live, with the keyboard, the forms obeyed."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.web.live import LiveSite


async def test_a_failure_appears_on_the_overview_by_itself(browser_page: Page, live_site: LiveSite) -> None:
    command = {"type": "command", "argv": ["false"]}
    live_site.make("overview-broken", schedule_type="manual", max_retries=0, target=command)
    await browser_page.goto("/")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    live_site.ask("POST", "/api/v2/jobs/overview-broken/force-run")
    failing = browser_page.get_by_role("region", name="Failing")
    # On a busy machine a look at every job costs much, and what it found is kept for twenty times as long.
    await expect(failing.get_by_role("link", name="overview-broken")).to_be_visible(timeout=30_000)


async def test_the_table_beside_the_pulse_stays_open_while_it_changes(
    browser_page: Page, live_site: LiveSite
) -> None:
    live_site.make("overview-table", schedule_type="manual")
    await browser_page.goto("/")
    await expect(browser_page.locator("#live")).to_have_attribute("data-state", "live")
    await browser_page.get_by_text("As a table").click()
    table = browser_page.get_by_role("region", name="Runs by the hour")
    await expect(table).to_be_visible()
    done = table.locator("tbody td:nth-of-type(1)")
    before = await done.all_inner_texts()
    live_site.ask("POST", "/api/v2/jobs/overview-table/force-run")
    await expect(done).not_to_have_text(before)
    await expect(table).to_be_visible()


async def test_all_workers_are_drained_and_resumed(browser_page: Page, live_site: LiveSite) -> None:
    state = browser_page.locator("#instances tbody tr").first.locator("td").first
    await browser_page.goto("/ui/workers")
    try:
        await browser_page.get_by_role("button", name="Drain all").click()
        await browser_page.get_by_role("button", name="Drain all").click()
        await expect(browser_page.get_by_text("take nothing new")).to_be_visible()
        await expect(state).to_have_text(re.compile("draining|drained"))
        await browser_page.get_by_role("button", name="Resume all").click()
        await expect(browser_page.get_by_text("take work again")).to_be_visible()
        await expect(state).to_have_text("running")
    finally:
        live_site.ask("POST", "/api/v2/scheduler/resume")


async def test_a_trigger_is_registered_called_and_removed(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("overview-hook", schedule_type="event", trigger_channel="overview:hook")
    await browser_page.goto("/ui/triggers")
    await browser_page.get_by_label("Job, by name or id").fill("overview-hook")
    await browser_page.get_by_label("Path or channel").fill("/overview/*/hook")
    await browser_page.keyboard.press("Enter")
    await expect(browser_page.get_by_text("Calls of /overview/*/hook start overview-hook.")).to_be_visible()
    await browser_page.get_by_label("Path", exact=True).fill("/overview/7/hook")
    await browser_page.keyboard.press("Enter")
    await expect(browser_page.get_by_text("reaches 1 job")).to_be_visible()
    await browser_page.get_by_role("button", name="Call it now").click()
    await expect(browser_page.get_by_text("/overview/7/hook was called. 1 job started.")).to_be_visible()
    delivery = browser_page.get_by_role("region", name="Deliveries").get_by_role("link").first
    await expect(delivery).to_have_text("overview-hook")
    await browser_page.get_by_role("button", name="Remove /overview/*/hook of overview-hook").click()
    await expect(browser_page.get_by_text("Calls do not start overview-hook any more")).to_be_visible()
