"""What holds for each page: both themes, phone and wide screen, readers of every kind, the policy kept."""

from __future__ import annotations

from typing import Any, Final

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

from tests.web.everywhere import address_of, paths
from tests.web.live import LiveSite
from tests.web.watching import PHONE, WIDE, Theme, Watched

_AXE: Final = Axe().axe_script
_RUN: Final = (
    "(how) => axe.run(document, {resultTypes: ['violations'], ...how}).then((found) => found.violations)"
)
_THEMES: Final[tuple[tuple[Theme, dict[str, Any]], ...]] = (
    ("light", {}),
    ("dark", {"runOnly": ["cat.color"]}),  # nothing but colours depends on the theme
)
_NARROW: Final = (320, 640)


@pytest.mark.parametrize("path", paths())
async def test_it_is_for_everybody_everywhere(path: str, watched: Watched, live_site: LiveSite) -> None:
    page = await watched.open()
    answer = await page.goto(address_of(path, live_site))
    assert answer is not None
    assert answer.status == 200
    assert "text/html" in (answer.headers.get("content-type") or "")
    await page.evaluate(_AXE)
    for theme, how in _THEMES:
        await page.emulate_media(color_scheme=theme)
        for width, height in (WIDE, PHONE):
            await page.set_viewport_size({"width": width, "height": height})
            assert _told(await page.evaluate(_RUN, how)) == [], f"{theme}, {width} px"
    assert await page.locator("h1").count() == 1
    assert await page.locator("time:not([data-tz])").count() == 0
    await _fits(page)
    watched.assert_clean()


async def _fits(page: Page) -> None:
    """On the narrowest screen a table may scroll in its frame, the page may not."""
    await page.set_viewport_size({"width": _NARROW[0], "height": _NARROW[1]})
    assert await page.evaluate("document.documentElement.scrollWidth") <= _NARROW[0]


def _told(violations: list[dict[str, Any]]) -> list[str]:
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in violations for node in one["nodes"][:3]
    ]


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
    assert await page.get_by_text("crawl-news").count() >= 1
