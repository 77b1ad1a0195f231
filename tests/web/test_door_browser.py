"""A closed scheduler in a real browser: sign in, look, make a key, sign out; in words and without a mouse."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Final

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from noonday.api.door.tokens import signed
from noonday.clock import SystemClock
from noonday.domain.access import Caller, Role
from noonday.domain.claims import Rules
from tests.cluster.node import Node
from tests.servers import free_port
from tests.web.watching import Theme, Watched

SECRET: Final = "hT5wEbPzqGZ7V0HnJvOq6vR0z1H4sQxLk2m9d"
_THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
_KEY: Final = re.compile(r"nd_\w{8}_\w{40}")
_VIOLATIONS: Final = "axe.run(document).then((found) => found.violations.map((one) => one.id))"


@pytest.fixture(scope="module")
def closed_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("closed")
    settings = {
        "DATABASE_URL": f"sqlite:///{folder / 'noonday.db'}",
        "JWT_SECRET": SECRET,
        "LOG_LEVEL": "warning",
    }
    node = Node("closed", free_port(), settings, folder)
    try:
        node.start()
        yield node.url
    finally:
        if node.alive:
            node.terminate()
            node.wait()


@pytest_asyncio.fixture(loop_scope="session")
async def closed(browser: Browser, closed_url: str) -> AsyncIterator[Watched]:
    made = Watched(browser, closed_url)
    yield made
    await made.close()
    made.assert_clean()


def a_token() -> str:
    rules = Rules(issuer="noonday", audience="noonday")
    caller = Caller(name="ada", role=Role.ADMIN)
    return signed(SECRET, caller, rules, SystemClock().now(), timedelta(hours=1))


async def sign_in(page: Page) -> None:
    """With the keyboard alone: the field has the focus."""
    await expect(page.get_by_label("API key or token")).to_be_focused()
    await page.keyboard.type(a_token())
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Sign out ada")).to_be_visible()


async def test_somebody_signs_in_works_and_signs_out(closed: Watched) -> None:
    page = await closed.open("/ui/settings")
    await sign_in(page)
    await expect(page).to_have_url(f"{closed.url}/ui/settings")
    await page.get_by_label("Who holds it").fill("ci")
    await expect(page.get_by_label("Service with the role service alone")).to_be_hidden()
    await page.get_by_role("button", name="Make the key").click()
    await expect(page.get_by_label("The new key", exact=True)).to_have_value(_KEY)
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    await page.goto("/ui/settings")
    await page.get_by_text("Revoke…").click()
    await page.get_by_role("button", name="Revoke for good").click()
    await expect(page.get_by_text("of ci is revoked")).to_be_visible()
    await page.get_by_role("button", name="Sign out ada").click()
    await expect(page.get_by_text("You are signed out.")).to_be_visible()
    await page.goto("/ui/jobs")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_script_of_our_page_is_known_by_the_cookie_and_listens(closed: Watched) -> None:
    page = await closed.open("/ui/settings")
    await sign_in(page)
    assert await page.evaluate("fetch('/api/v2/jobs').then((answer) => answer.status)") == 200
    pause = """async (headers) =>
        (await fetch('/api/v2/jobs/none/pause', {method: 'POST', headers})).status"""
    assert await page.evaluate(pause, {}) == 403
    token = await page.locator("meta[name=form-token]").get_attribute("content")
    assert await page.evaluate(pause, {"X-Form-Token": token}) == 404
    opened = """new Promise((done) => {
        const source = new EventSource('/api/events');
        source.onopen = () => { source.close(); done('open'); };
        source.onerror = () => { source.close(); done('refused'); };
    })"""
    assert await page.evaluate(opened) == "open"
    assert "noonday_session" not in await page.evaluate("document.cookie")


async def test_it_works_without_a_script(closed: Watched) -> None:
    page = await closed.open("/ui/settings", scripts=False)
    await page.get_by_label("API key or token").fill(a_token())
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("dark").check()
    await page.get_by_label("UTC").check()
    await page.get_by_role("button", name="Keep this").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.locator("footer")).to_contain_text("Times in UTC")


async def test_the_door_is_for_everybody(closed: Watched) -> None:
    page = await closed.open("/ui/login", size=(320, 640))
    await in_both_themes(page)
    await page.get_by_label("API key or token").fill("nonsense")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("not good")
    await in_both_themes(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await page.get_by_label("API key or token").fill(a_token())
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Sign out ada")).to_be_visible()
    await page.goto("/ui/nowhere")
    await expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    await in_both_themes(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def in_both_themes(page: Page) -> None:
    await page.evaluate(Axe().axe_script)
    for theme in _THEMES:
        await page.emulate_media(color_scheme=theme)
        assert await page.evaluate(_VIOLATIONS) == [], theme
