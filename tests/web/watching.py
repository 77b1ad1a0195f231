"""A browser's pages, and everything they complain about: scripts, policy, requests to elsewhere."""

from __future__ import annotations

from typing import Any, Final, Literal
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, Response

Theme = Literal["light", "dark"]
WIDE: Final = (1280, 900)
PHONE: Final = (390, 844)
_PATIENCE: Final = 5_000  # ms
_OWN: Final = ("data:", "blob:", "about:")


class Watched:
    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self.url = browser, url
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        self.strangers: list[str] = []  # requests to another host

    async def open(
        self,
        path: str | None = None,
        *,
        theme: Theme = "light",
        size: tuple[int, int] = WIDE,
        zone: str = "Europe/Berlin",
        scripts: bool = True,
    ) -> Page:
        context = await self._browser.new_context(
            base_url=self.url,
            color_scheme=theme,
            viewport={"width": size[0], "height": size[1]},
            timezone_id=zone,
            locale="en-GB",
            reduced_motion="reduce",
            java_script_enabled=scripts,
        )
        self._contexts.append(context)
        host = urlsplit(self.url).hostname or ""
        cookies: Any = [{"name": "noonday_zone", "value": zone, "domain": host, "path": "/"}]
        await context.add_cookies(cookies)
        page = await context.new_page()
        page.set_default_timeout(_PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", self._failed)
        page.on("request", self._asked)
        page.on("response", self._answered)
        if path is not None:
            await page.goto(path)
        return page

    @property
    def page(self) -> Page:
        """The one that was opened last."""
        return self._contexts[-1].pages[-1]

    def forget(self) -> None:
        """What was complained of so far."""
        self.complaints.clear()
        self.strangers.clear()

    def assert_clean(self) -> None:
        """No script failed, the policy of the pages was kept, and nothing left the host."""
        assert not self.complaints
        assert not self.strangers

    async def close(self) -> None:
        while self._contexts:
            await self._contexts.pop().close()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _failed(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _asked(self, request: Request) -> None:
        address = request.url
        if not address.startswith(_OWN) and urlsplit(address).netloc != urlsplit(self.url).netloc:
            self.strangers.append(address)

    def _answered(self, response: Response) -> None:
        if response.status >= 500 or (response.status == 404 and "/ui/static/" in response.url):
            self.complaints.append(f"{response.status} {response.url}")
