"""What axe finds wrong on a page: by all rules once, then by those that another theme or size can break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

__all__ = ["COLOURS", "SIZES", "judged", "load", "newly_shown"]

COLOURS: Final = ("color-contrast", "link-in-text-block")
SIZES: Final = ("target-size", "scrollable-region-focusable")
_SCRIPT: Final = Axe().axe_script
_JUDGE: Final = """
async ([rules, news]) => {
    const all = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility())
    const fresh = all.filter((one) => !one.seen && one.parentElement?.seen)
    if (news && !fresh.length) return []
    const how = {resultTypes: ['violations'], preload: false, ...(rules.length && {runOnly: rules})}
    const found = await axe.run(news ? {include: fresh} : document, how)
    return found.violations
}
"""
# Of rows that differ in words alone two are enough: fifty of them cost seconds and prove no more.
_THIN_OUT: Final = """
() => {
    const telling = ['class', 'style', 'type', 'role', 'hidden', 'disabled', 'data-state', 'aria-current']
    const shape = (one) => one.localName + one.getAttributeNames().map(
        (name) => ' ' + name + (telling.includes(name) ? one.getAttribute(name) : '')).join('')
    const shapes = (one) => [one, ...one.querySelectorAll(':not(svg *)')].map(shape).join()
    const known = new Map()
    for (const one of document.querySelectorAll('tr, li, option, details, svg *')) {
        if (!one.isConnected) continue
        const beside = known.get(one.parentElement) ?? new Map()
        const alike = shapes(one), times = beside.get(alike) ?? 0
        if (times > 1) one.remove()
        known.set(one.parentElement, beside.set(alike, times + 1))
    }
}
"""
_LOOK_OVER: Final = """
() => document.querySelectorAll('body, body *').forEach((one) => { one.seen = one.checkVisibility() })
"""


async def load(page: Page) -> None:
    """From now on the page is only good for being judged."""
    await page.evaluate(_THIN_OUT)
    await page.evaluate(_LOOK_OVER)
    await page.evaluate(_SCRIPT)


async def judged(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """By these rules, or by all that are meant for every page."""
    return _told(await page.evaluate(_JUDGE, [list(rules), False]))


async def newly_shown(page: Page, rules: Sequence[str]) -> list[str]:
    """Only of what could not be seen when it was loaded."""
    return _told(await page.evaluate(_JUDGE, [list(rules), True]))


def _told(violations: list[dict[str, Any]]) -> list[str]:
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in violations for node in one["nodes"][:3]
    ]
