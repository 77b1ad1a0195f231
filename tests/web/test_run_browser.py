"""The output of a run in a real browser: followed live, left alone while somebody reads, searched, linked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Page, Route, expect

from tests.web.live import LiveSite
from tests.web.watching import PHONE, Watched


def started(site: LiveSite, name: str, script: str, **body: Any) -> str:
    """The id of a run of this shell script."""
    site.make(name, target={"type": "command", "argv": ["sh", "-c", script]}, **body)
    found: str = site.ask("POST", f"/api/v2/jobs/{name}/force-run")["execution_id"]
    return found


def written(site: LiveSite, run: str, text: str) -> None:
    """Wait until this can be read and the run is over, as a program would."""
    found = ""
    while text not in found:
        pieces = site.ask("GET", f"/api/v2/executions/{run}/output")["pieces"]
        found = "".join(one["text"] for one in pieces)
    while site.ask("GET", f"/api/v2/executions/{run}")["status"] == "running":
        pass


async def place_of(page: Page, line: str) -> tuple[float, float]:
    """Its top and its height."""
    box = await page.locator(line).bounding_box()
    assert box is not None
    return box["y"], box["height"]


async def contrast(page: Page, what: str) -> float:
    """Of a text against the ground of the output."""
    found: float = await page.locator(what).first.evaluate(_CONTRAST)
    return found


_CONTRAST = """(text) => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = getComputedStyle(text.closest("log-tail")).backgroundColor;
  const two = [getComputedStyle(text).color, ground].map(light);
  return (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
}"""


def waits_for(path: Path) -> str:
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


async def test_lines_come_as_they_are_written(
    browser_page: Page, live_site: LiveSite, tmp_path: Path
) -> None:
    go, end = tmp_path / "go", tmp_path / "end"
    red, navy = "\\033[31mtwo\\033[0m", "\\033[1;38;5;17mthree\\033[0m"
    script = f"printf '1%%\\r99%%\\rone\\n'; {waits_for(go)}; printf '{red}\\n{navy}\\n'; {waits_for(end)}"
    run = started(live_site, "run-live", script)
    await browser_page.goto(f"/ui/runs/{run}")
    lines = browser_page.locator("log-tail .line")
    box = browser_page.get_by_role("log")
    await expect(lines).to_have_text(["1one"])
    await expect(box).to_have_attribute("aria-live", "polite")
    go.touch()
    await expect(lines).to_have_text(["1one", "2two", "3three"])
    await expect(browser_page.locator("log-tail .a-1")).to_have_text("two")
    await expect(browser_page.locator("log-tail .a-b")).to_have_css("color", re.compile("rgb"))
    assert await contrast(browser_page, "log-tail .a-b") >= 4.5  # dark blue, on dark too
    await browser_page.emulate_media(color_scheme="dark")
    assert await contrast(browser_page, "log-tail .a-b") >= 4.5
    end.touch()
    await expect(browser_page.locator("#run-now .head .state")).to_have_text("completed")
    await expect(browser_page.locator("log-tail")).to_have_attribute("data-state", "ended")
    await expect(browser_page.get_by_role("button", name="Follow")).to_be_hidden()
    await expect(box).to_have_attribute("aria-live", "off")


async def test_it_follows_until_somebody_scrolls_up(
    browser_page: Page, live_site: LiveSite, tmp_path: Path
) -> None:
    go, more = tmp_path / "go", tmp_path / "more"
    script = f"seq 1 500; {waits_for(go)}; seq 501 600; {waits_for(more)}; seq 601 700"
    run = started(live_site, "run-follow", script)
    await browser_page.goto(f"/ui/runs/{run}")
    follow = browser_page.get_by_role("button", name="Follow")
    await expect(browser_page.locator("#L500")).to_be_in_viewport()
    go.touch()
    await expect(browser_page.locator("#L600")).to_be_in_viewport()
    await browser_page.locator("log-tail .lines").hover()
    await browser_page.mouse.wheel(0, -3000)
    await expect(follow).to_have_attribute("aria-pressed", "false")
    await expect(browser_page.get_by_role("log")).to_have_attribute("aria-live", "off")
    more.touch()
    await expect(browser_page.locator("log-tail .foot")).to_contain_text("700 lines")
    await expect(browser_page.locator("#L700")).to_have_count(0)
    newest = browser_page.get_by_role("button", name="Jump to newest")
    await newest.click()
    await expect(browser_page.locator("#L700")).to_be_in_viewport()
    await expect(newest).to_be_hidden()


async def test_a_hundred_thousand_lines_stay_light(browser_page: Page, live_site: LiveSite) -> None:
    run = started(live_site, "run-long", "seq 1 100000")
    await browser_page.goto(f"/ui/runs/{run}#L50000")
    await expect(browser_page.locator("log-tail .foot")).to_contain_text("100,000 lines")
    aimed = browser_page.locator("#L50000")
    await expect(aimed).to_be_in_viewport()
    await expect(aimed).to_have_class(re.compile("aim"))
    assert await browser_page.locator("log-tail .line").count() < 200
    await browser_page.reload()
    await expect(browser_page.locator("#L50000")).to_be_in_viewport()  # the link survives

    await browser_page.get_by_role("searchbox", name="Find in the output").fill("9999")
    await expect(browser_page.locator("log-tail .bench")).to_contain_text("1 of 19 lines")
    await expect(browser_page.locator("#L9999 mark")).to_have_text("9999")
    await browser_page.get_by_role("button", name="The match before").click()
    await expect(browser_page.locator("#L99999")).to_be_in_viewport()

    await browser_page.locator("#L99999 a").click()
    await expect(browser_page).to_have_url(re.compile("#L99999$"))
    await browser_page.locator("#L99996 a").click(modifiers=["Shift"])
    await expect(browser_page).to_have_url(re.compile("#L99996-L99999$"))
    await expect(browser_page.locator("log-tail .aim")).to_have_count(4)
    await browser_page.reload()
    await expect(browser_page.locator("log-tail .aim")).to_have_count(4)
    await expect(browser_page.locator("#L99996")).to_be_in_viewport()


async def test_long_lines_wrap(watched: Watched, live_site: LiveSite) -> None:
    words = "many words " * 40
    run = started(live_site, "run-wide", f"for i in 1 2 3; do echo '{words}'; done")
    page = await watched.open(f"/ui/runs/{run}", size=PHONE)
    await expect(page.locator("#L3")).to_be_visible()
    _, tall = await place_of(page, "#L1")
    await page.get_by_label("Wrap").check()
    await expect(page.locator("log-tail .lines")).to_have_class(re.compile("wrap"))
    (top, high), (below, _) = await place_of(page, "#L1"), await place_of(page, "#L2")
    assert high > 5 * tall
    assert abs(top + high - below) < 2  # they neither overlap nor leave a hole
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    watched.assert_clean()


async def test_a_lost_connection_is_told_and_mended(
    browser_page: Page, live_site: LiveSite, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    run = started(live_site, "run-lost", f"echo there; {waits_for(end)}; echo back")
    cut: list[bool] = []

    async def gate(route: Route) -> None:
        await (route.abort() if cut else route.continue_())

    await browser_page.route("**/output?*", gate)
    await browser_page.goto(f"/ui/runs/{run}")
    await expect(browser_page.locator("#L1")).to_have_text("1there")
    cut.append(True)
    await expect(browser_page.locator("log-tail .foot")).to_contain_text("Reconnecting")
    cut.clear()
    end.touch()
    await expect(browser_page.locator("#L2")).to_have_text("2back")
    await expect(browser_page.locator("log-tail .foot")).not_to_contain_text("Reconnecting")


async def test_a_flood_shows_what_it_lost(browser_page: Page, live_site: LiveSite) -> None:
    run = started(live_site, "run-flood", "seq -f 'line %.0f of many that nobody will read' 1 120000")
    await browser_page.goto(f"/ui/runs/{run}")
    await expect(browser_page.locator("#L120000")).to_have_text(
        "120000line 120000 of many that nobody will read"
    )
    await browser_page.get_by_role("searchbox", name="Find in the output").fill("left out")
    gap = browser_page.locator("log-tail .line.gone")
    await expect(gap).to_contain_text("characters left out")
    # Behind the gap the numbers are those of the lines that were written.
    after = browser_page.locator("log-tail .line.gone + .line + .line")
    number = await after.locator("a").inner_text()
    await expect(after).to_contain_text(f"line {number} of many")


async def test_without_scripts_it_is_all_there(watched: Watched, live_site: LiveSite) -> None:
    run = started(live_site, "run-plain", "printf '10%%\\r\\033[32mplain words\\033[0m\\n'")
    written(live_site, run, "plain words")
    page = await watched.open(f"/ui/runs/{run}", scripts=False)
    await expect(page.locator("log-tail pre")).to_have_text("plain words\n", use_inner_text=True)
    await page.get_by_role("button", name="Run again").click()
    await expect(page.locator(".note").first).to_contain_text("This is the new run")
    assert run not in page.url
