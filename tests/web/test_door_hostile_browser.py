"""Hostile texts in a real browser: no script of theirs runs, no policy is broken, nothing leaves the host."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from playwright.async_api import Dialog, expect

from tests.hostile.test_pages_texts import NAME, TEXT, WILD
from tests.web.live import LiveSite
from tests.web.watching import Watched

_WROTE: Final = WILD.encode("utf-8", "replace").decode()[:2000]
_STRANGE: Final = """() => [
    ...document.querySelectorAll("xss-probe, img, iframe, [data-probe], [onerror], [onload], [style*=probe]"),
].map((one) => one.outerHTML)"""


async def test_no_page_obeys_what_it_shows(watched: Watched, live_site: LiveSite) -> None:
    job = live_site.make(
        NAME,
        description=TEXT,
        tags=[TEXT[:50]],
        config={"note": TEXT, TEXT[:40]: 1},
        trigger_webhook="/hooks/" + NAME.replace("*", "x"),
        target={"type": "command", "argv": ["printf", "%s", TEXT + _WROTE]},
    )
    run = live_site.ask("POST", f"/api/v2/jobs/{job['id']}/force-run")["execution_id"]
    page = await watched.open(f"/ui/runs/{run}")
    opened: list[Dialog] = []

    def told(dialog: Dialog) -> None:
        opened.append(dialog)

    page.on("dialog", told)
    await expect(page.locator("log-tail")).to_contain_text("<xss-probe>")
    home = f"/ui/jobs/{quote(NAME, safe='')}"
    for path in (
        f"/ui/runs/{run}",
        home,
        f"{home}/configuration",
        f"{home}/history",
        f"{home}/edit",
        f"/ui/jobs?q={quote('xss-probe')}",
        f"/ui/timeline?q={quote('xss-probe')}",
        f"/ui/jobs/{quote('none' + NAME, safe='')}",
    ):
        await page.goto(path)
        assert "xss-probe" in await page.inner_text("body"), path
        assert await page.evaluate(_STRANGE) == [], path
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    await page.goto("/ui/jobs")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("xss-probe")
    await expect(page.get_by_role("option").first).to_contain_text(NAME)
    assert await page.evaluate(_STRANGE) == []
    assert not opened
    watched.assert_clean()
