"""A page for a reader: the template, what every page shows, and the reader's own zone and theme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from noonday.api.callers import CALLER
from noonday.domain.access import Caller, Right
from noonday.web import assets, strips, words

__all__ = ["Page", "Reader", "Show"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}
ZONE_COOKIE: Final = "noonday_zone"
THEME_COOKIE: Final = "noonday_theme"
NOTE_COOKIE: Final = "noonday_note"  # one sentence about what a form has done, shown once
THEMES: Final = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """`zone` is the reader's own as the browser told, UTC before that; the caller says what they may do."""

    caller: Caller | None
    zone: ZoneInfo
    theme: str

    def may(self, right: str) -> bool:
        return self.caller is not None and self.caller.may(Right(right))


class Page:
    """What a view answers with."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reader = _reader(request)
        self.now: datetime = request.app.state.services.clock.now()

    def html(self, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
        note = self.request.cookies.get(NOTE_COOKIE)
        text = (
            _templates()
            .get_template(template)
            .render(
                **shown,
                page=self,
                reader=self.reader,
                path=self.request.url.path,
                now=self.now,
                note=note and unquote(note),
                time=self._time,
                ago=self._ago,
            )
        )
        answer = HTMLResponse(text, status, headers=_HEADERS)
        if note is not None:
            answer.delete_cookie(NOTE_COOKIE, path="/")
        return answer

    def back_to(self, address: str, note: str | None = None) -> RedirectResponse:
        """After a form was obeyed: look at what it has done."""
        answer = RedirectResponse(address, 303)
        if note is not None:
            told = quote(note[:500], safe="")
            answer.set_cookie(NOTE_COOKIE, told, max_age=60, httponly=True, samesite="lax")
        return answer

    def _time(self, at: datetime | None, zone: str | None = None) -> Any:
        return words.time(at, ZoneInfo(zone) if zone else self.reader.zone)

    def _ago(self, at: datetime | None) -> Any:
        return words.ago(at, self.now, self.reader.zone)


def _page(request: Request) -> Page:
    return Page(request)


Show = Annotated[Page, Depends(_page)]


def _reader(request: Request) -> Reader:
    theme = request.cookies.get(THEME_COOKIE, "auto")
    return Reader(
        caller=request.scope.get(CALLER),
        zone=_zone(request.cookies.get(ZONE_COOKIE, "UTC")),
        theme=theme if theme in THEMES else "auto",
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


@lru_cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("noonday.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "span": words.span,
        "count": words.count,
        "state": words.state,
        "strip": strips.strip,
    }
    made.filters.update(filters)
    made.globals.update(asset=assets.address_of, UTC=UTC, timedelta=timedelta)
    return made
