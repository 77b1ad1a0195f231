"""The harness itself: what tests of pages rely on."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.web.site import Site
from tests.web.watching import Watched


async def test_it_answers_pages_and_the_api_alike(any_site: Site) -> None:
    await any_site.make(name="nightly-crawl")
    assert "nightly-crawl" in await any_site.page("/ui/jobs")


async def test_it_opens_a_page_in_a_real_browser(browser_page: Page) -> None:
    await browser_page.goto("/ui/jobs")
    await expect(browser_page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()


async def test_it_notices_what_the_policy_forbids(watched: Watched) -> None:
    page = await watched.open("/ui/jobs")
    await page.evaluate(
        "document.body.append(Object.assign(new Image(), {src: 'http://elsewhere.invalid/a.png'}))"
    )
    await page.evaluate("document.body.setAttribute('style', 'color: red')")
    await expect(page.locator("img")).to_be_attached()
    with pytest.raises(AssertionError):
        watched.assert_clean()
