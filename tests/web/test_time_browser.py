"""The pages of time in a browser: what a pointer and the keys find on them."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from noonday.clock import SystemClock
from tests.web.live import LiveSite
from tests.web.watching import Watched


def two_tracks(site: LiveSite, name: str) -> None:
    """Two jobs with much to come, but not while a test looks; the first of them has run."""
    minute = (SystemClock().now().minute + 30) % 60
    for job in (f"{name}-1", f"{name}-2"):
        site.make(job, cron_expression=f"{minute} * * * *")
    site.ask("POST", f"/api/v2/jobs/{name}-1/force-run", {})


async def until_run(page: Page, path: str) -> Locator:
    """The tracks of a page, once the first has a completed run."""
    tracks = page.locator(".track[data-track]")
    for _ in range(100):
        await page.goto(path)
        if "1 completed" in (await tracks.first.get_attribute("aria-label") or ""):
            break
    return tracks


async def point_at_now(track: Locator) -> tuple[float, float]:
    """Where that is on the track."""
    box = await track.bounding_box()
    assert box
    x, y = box["width"] / 2, 10.0
    await track.hover(position={"x": x, "y": y})
    return x, y


async def test_the_pointer_tells_what_lies_under_it_and_opens_it(
    browser_page: Page, live_site: LiveSite
) -> None:
    two_tracks(live_site, "pointed")
    tracks = await until_run(browser_page, "/ui/timeline?q=pointed&span=1h")
    tip = browser_page.locator("time-line output")
    await expect(tip).to_be_hidden()
    x, y = await point_at_now(tracks.first)
    await expect(tip).to_contain_text(re.compile("pointed-1.*completed", re.DOTALL))
    await expect(tip).to_contain_text(re.compile("GMT|UTC|CE"))
    await expect(tracks.first.locator(".mark")).to_have_count(1)
    await tracks.first.click(position={"x": x, "y": y})
    await expect(browser_page).to_have_url(re.compile(r"/ui/runs/[0-9a-f-]{36}"))


async def test_what_is_pointed_at_stays_shown_when_the_page_is_drawn_anew(
    browser_page: Page, live_site: LiveSite
) -> None:
    two_tracks(live_site, "resting")
    tracks = await until_run(browser_page, "/ui/timeline?q=resting&span=1h")
    tip = browser_page.locator("time-line output")
    await point_at_now(tracks.first)
    await expect(tracks.first.locator(".mark")).to_have_count(1)
    live_site.ask("POST", "/api/v2/jobs/resting-2/force-run", {})
    await expect(tracks.nth(1)).to_have_attribute("aria-label", re.compile("1 completed"))
    await expect(tracks.first.locator(".mark")).to_have_count(1)
    await expect(tip).to_contain_text("resting-1")
    await expect(tip).to_be_visible()


async def test_the_arrow_keys_walk_from_run_to_run_and_from_track_to_track(
    browser_page: Page, live_site: LiveSite
) -> None:
    two_tracks(live_site, "walked")
    tracks = await until_run(browser_page, "/ui/timeline?q=walked&span=6h&group=none")
    tip = browser_page.locator("time-line output")
    await tracks.nth(0).focus()
    await browser_page.keyboard.press("ArrowDown")
    await expect(tracks.nth(1)).to_be_focused()
    await browser_page.keyboard.press("ArrowUp")
    await expect(tracks.nth(0)).to_be_focused()
    await browser_page.keyboard.press("ArrowRight")
    await expect(tip).to_contain_text("completed")
    await browser_page.keyboard.press("ArrowRight")
    await expect(tip).to_contain_text("planned")
    await browser_page.keyboard.press("Escape")
    await expect(tip).to_be_hidden()
    await browser_page.keyboard.press("-")
    await expect(browser_page).to_have_url(re.compile("span=12h"))
    await browser_page.keyboard.press("+")
    await expect(browser_page).to_have_url(re.compile("span=6h"))
    await tracks.nth(0).focus()
    await browser_page.keyboard.press("ArrowRight")
    await browser_page.keyboard.press("ArrowRight")
    await browser_page.keyboard.press("Enter")
    await expect(browser_page).to_have_url(re.compile("/ui/jobs/walked-1"))


async def test_a_run_that_starts_appears_on_its_track(browser_page: Page, live_site: LiveSite) -> None:
    live_site.make("by-hand", schedule_type="manual")
    await browser_page.goto("/ui/timeline?q=name:by-hand&span=1h")
    track = browser_page.get_by_role("img", name=re.compile("^by-hand"))
    await expect(track).to_have_accessible_name("by-hand: nothing")
    live_site.ask("POST", "/api/v2/jobs/by-hand/force-run", {})
    await expect(track).to_have_accessible_name("by-hand: 1 completed")


async def test_without_scripts_the_tracks_are_drawn_and_all_else_works(
    watched: Watched, live_site: LiveSite
) -> None:
    two_tracks(live_site, "plain")
    page = await watched.open("/ui/timeline?q=plain", scripts=False)
    await expect(page.locator(".track[data-track] path.planned")).to_have_count(2)
    await page.goto("/ui/load")
    await page.get_by_role("button", name="Preview rebalancing").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Rebalancing: a preview")
    await page.goto("/ui/load")
    await page.locator(".heat.planned a").nth(3).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Planned for the hour from")
