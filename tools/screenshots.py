"""Pictures of every page, light, dark and on a phone: `make screenshots` writes them into docs/images."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, async_playwright

from tests.web import chromium
from tests.web.everywhere import address_of, paths
from tests.web.live import LiveSite, live
from tests.web.watching import PHONE, WIDE, Theme, Watched

FOLDER: Final = Path("docs") / "images"
_LOOKS: Final[tuple[tuple[str, Theme, tuple[int, int]], ...]] = (
    ("light", "light", WIDE),
    ("dark", "dark", WIDE),
    ("phone", "light", PHONE),
)


def name_of(path: str) -> str:
    words = path.removeprefix("/ui").strip("/").replace("{", "").replace("}", "")
    return words.replace("/", "-") or "overview"


def wanted(words: Sequence[str]) -> dict[str, str]:
    """By the name of the picture: all, or those that were asked for."""
    found = {name_of(path): path for path in paths() if path != "/ui"}
    unknown = set(words) - found.keys()
    if unknown:
        raise SystemExit(f"no such page: {', '.join(sorted(unknown))}; there are {', '.join(sorted(found))}")
    return {name: path for name, path in found.items() if not words or name in words}


async def taken(browser: Browser, site: LiveSite, pages: dict[str, str]) -> None:
    watched = Watched(browser, site.url)
    for name, path in pages.items():
        for look, theme, size in _LOOKS:
            page = await watched.open(address_of(path, site), theme=theme, size=size)
            await page.screenshot(path=FOLDER / f"{name}-{look}.png")
            print(FOLDER / f"{name}-{look}.png")
        await watched.close()


async def main(words: Sequence[str]) -> None:
    pages = wanted(words)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="noonday-") as folder, live(Path(folder)) as site:
        async with async_playwright() as playwright:
            made = await playwright.chromium.launch(
                executable_path=chromium.find(),
                args=list(chromium.SWITCHES),
                env={**chromium.home_of(Path(folder))},
            )
            await taken(made, site, pages)
            await made.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
