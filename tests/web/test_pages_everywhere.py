"""What holds for each page: both themes, phone and wide screen, readers of every kind, the policy kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.web import axe
from tests.web.everywhere import address_of, cases
from tests.web.live import LiveSite
from tests.web.watching import PHONE, WIDE, Watched

_NARROW: Final = (320, 640)
_TWICE: Final = """
() => [...document.querySelectorAll('[id]')].map((one) => one.id)
    .filter((id, place, all) => all.indexOf(id) !== place)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(browser: Browser, live_site: LiveSite) -> AsyncIterator[Watched]:
    """Somebody who goes from page to page."""
    made = Watched(browser, live_site.url)
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize(("path", "status"), cases())
async def test_it_is_for_everybody_everywhere(
    path: str, status: int, reader: Watched, live_site: LiveSite
) -> None:
    page = reader.page
    reader.forget()
    await page.emulate_media(color_scheme="light")
    await _sized(page, WIDE)
    answer = await page.goto(address_of(path, live_site))
    assert answer is not None
    assert answer.status == status
    assert "text/html" in (answer.headers.get("content-type") or "")
    assert await page.locator("h1").count() == 1
    assert await page.locator("time:not([data-tz])").count() == 0
    assert await page.evaluate(_TWICE) == []
    await _fits(page)
    await _sized(page, WIDE)
    await axe.load(page)
    assert await axe.judged(page) == []
    await page.emulate_media(color_scheme="dark")
    assert await axe.judged(page, axe.COLOURS) == []
    await _sized(page, PHONE)
    assert await axe.judged(page, axe.SIZES) == []
    assert await axe.newly_shown(page, axe.COLOURS) == []
    await page.emulate_media(color_scheme="light")
    assert await axe.newly_shown(page, axe.COLOURS) == []
    reader.assert_clean()


async def _sized(page: Page, size: tuple[int, int]) -> None:
    await page.set_viewport_size({"width": size[0], "height": size[1]})


async def _fits(page: Page) -> None:
    """On the narrowest screen a table may scroll in its frame, the page may not."""
    await _sized(page, _NARROW)
    assert await page.evaluate("document.documentElement.scrollWidth") <= _NARROW[0]


async def test_every_page_of_the_bar_is_there(watched: Watched) -> None:
    page = await watched.open("/ui/jobs")
    links = page.locator("header nav a")
    addresses = [str(await link.get_attribute("href")) for link in await links.all()]
    answers = {address: (await page.request.get(address)).status for address in addresses}
    assert {address for address, status in answers.items() if status != 200} == set()


@pytest.mark.parametrize("path", ["/", "/ui/jobs"])
async def test_it_can_be_read_without_a_script(path: str, watched: Watched) -> None:
    page = await watched.open(path, scripts=False)
    assert await page.locator("h1").count() == 1
    assert await page.locator("main a[href^='/ui/jobs/']").count() > 1
    assert await page.get_by_text("A demonstration").is_visible()
    assert await page.locator("button[hidden]").count() > 2, "what only a script can do"
    assert await page.locator("[hidden]:visible").count() == 0
