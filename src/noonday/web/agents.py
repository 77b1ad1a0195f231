"""What a browser calls itself, in words: only so that people know their own browsers apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["named", "plain"]

_LONGEST: Final = 60
# Each pretends to be those after it, so the first that is found counts.
_BROWSERS: Final[Mapping[str, str]] = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "Chrome/": "Chrome",
    "CriOS/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS: Final[Mapping[str, str]] = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}
_UNSEEN = re.compile(r"[^\x20-\x7e]")


def plain(agent: str) -> str:
    """Without what no browser sends."""
    return _UNSEEN.sub("", agent)


def named(agent: str) -> str:
    browser = _first(_BROWSERS, agent)
    system = _first(_SYSTEMS, agent)
    if browser is None:
        return agent[:_LONGEST] or "unknown"
    return browser if system is None else f"{browser} on {system}"


def _first(names: Mapping[str, str], agent: str) -> str | None:
    return next((word for mark, word in names.items() if mark in agent), None)
