"""The cookie of a browser that is signed in, and what a browser says about the page that it comes from."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

__all__ = ["SESSION_COOKIE", "cookies_of", "proven", "session_of", "told_origin"]

SESSION_COOKIE: Final = "noonday_session"


def cookies_of(headers: Headers) -> dict[str, str]:
    return cookie_parser("; ".join(headers.getlist("cookie")))


def session_of(headers: Headers) -> str:
    """Nothing where there is none."""
    return cookies_of(headers).get(SESSION_COOKIE, "")


def proven(headers: Headers) -> bool:
    """Does it bring a proof that no other page can make a browser send?"""
    return "authorization" in headers or "x-api-key" in headers


def told_origin(headers: Headers) -> bool:
    """A cookie goes along with whatever a page asks for, so a change by cookie must say whose page asks."""
    return "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
