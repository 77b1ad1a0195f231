"""Pictures of the pages: the few that the documentation shows, or all of them in a folder of your own."""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.web import chromium
from tests.web.everywhere import address_of, cases
from tests.web.live import LiveSite, live
from tests.web.watching import PHONE, WIDE, Theme, Watched
from tools.pictures import smaller

FOLDER: Final = Path("docs") / "images"
_LOOKS: Final[Mapping[str, tuple[Theme, tuple[int, int]]]] = {
    "light": ("light", WIDE),
    "dark": ("dark", WIDE),
    "phone": ("light", PHONE),
}
_SHOWN: Final = {  # in the documentation
    "overview": ("light", "dark", "phone"),
    "jobs": ("light",),
    "jobs-job": ("light",),
    "runs-written": ("light",),
    "timeline": ("light",),
    "load": ("light",),
}


def name_of(path: str) -> str:
    words = path.partition("?")[0].removeprefix("/ui").strip("/")
    return re.sub(r"[{}]", "", words).replace("/", "-") or "overview"


def wanted(names: Sequence[str], *, everything: bool) -> dict[str, Sequence[str]]:
    """The looks of each page, by the name of its picture: those that were asked for, the few, or all."""
    known = {name_of(path) for path, _ in cases()}
    if unknown := set(names) - known:
        raise SystemExit(f"no such page: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    found = {name: tuple(_LOOKS) for name in sorted(known)} if everything else _SHOWN
    return {name: looks for name, looks in found.items() if not names or name in names}


async def taken(browser: Browser, site: LiveSite, pages: Mapping[str, Sequence[str]], folder: Path) -> None:
    addresses = {name_of(path): address_of(path, site) for path, _ in cases() if name_of(path) in pages}
    watched = Watched(browser, site.url)
    page = await watched.open()
    for name, looks in pages.items():
        for look in looks:
            picture = folder / f"{name}-{look}.png"
            picture.write_bytes(smaller(await _shot(page, addresses[name], look)))
            print(f"{picture}: {picture.stat().st_size // 1000} kB")
    await watched.close()


async def _shot(page: Page, address: str, look: str) -> bytes:
    theme, (width, height) = _LOOKS[look]
    await page.emulate_media(color_scheme=theme)
    await page.set_viewport_size({"width": width, "height": height})
    await page.goto(address)
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    return await page.screenshot()


async def main(names: Sequence[str], folder: Path | None) -> None:
    pages = wanted(names, everything=folder is not None)
    into = folder or FOLDER
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="noonday-") as own, live(Path(own)) as site:
        async with async_playwright() as playwright:
            made = await playwright.chromium.launch(
                executable_path=chromium.find(),
                args=list(chromium.SWITCHES),
                env={**chromium.home_of(Path(own))},
            )
            await taken(made, site, pages, into)
            await made.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", help="of pages, such as jobs or overview")
    parser.add_argument("--folder", type=Path, help="where every page goes, light, dark and on a phone")
    given = parser.parse_args()
    asyncio.run(main(given.names, given.folder))
