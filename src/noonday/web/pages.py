"""A page for a reader: the template, what every page shows, and the reader's own zone and theme."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from noonday.api.callers import CALLER
from noonday.api.door.form_tokens import FORM_COOKIE, bound_to, form_token
from noonday.domain.access import Caller, Right
from noonday.web import words
from noonday.web.templating import templates

__all__ = ["Page", "Reader", "Show"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ZONE_COOKIE: Final = "noonday_zone"
THEME_COOKIE: Final = "noonday_theme"
NOTE_COOKIE: Final = "noonday_note"  # one sentence about what a form has done, shown once
_LONGEST_NOTE: Final = 300  # characters: browsers keep no cookie of more than 4096 bytes
YEAR: Final = 365 * 86_400  # seconds that a cookie may last
LIVE: Final = "Noonday-Live"  # header of a page that brings itself up to date: no note is for it
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
        self.position: int | None = None  # of the newest event that the page knows of

    def html(self, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
        note = None if LIVE in self.request.headers else self.request.cookies.get(NOTE_COOKIE)
        bound = bound_to(self.request.cookies)
        fresh = None if bound else secrets.token_hex(32)
        text = (
            templates()
            .get_template(template)
            .render(
                **shown,
                page=self,
                reader=self.reader,
                path=self.request.url.path,
                now=self.now,
                note=note and unquote(note),
                form_token=form_token(bound or str(fresh)),
                time=self._time,
                ago=self._ago,
            )
        )
        answer = HTMLResponse(text, status, headers={"Content-Security-Policy": POLICY})
        if note is not None:
            answer.delete_cookie(NOTE_COOKIE, path="/")
        if fresh is not None:
            self.keep(answer, FORM_COOKIE, fresh, max_age=YEAR)
        return answer

    def keep(self, answer: Response, name: str, value: str, *, max_age: int) -> None:
        """Of no use to scripts, and to no other site."""
        https = self.request.url.scheme == "https"
        answer.set_cookie(name, value, max_age=max_age, httponly=True, samesite="lax", secure=https)

    def back_to(self, address: str, note: str | None = None) -> RedirectResponse:
        """After a form was obeyed: look at what it has done."""
        answer = RedirectResponse(address, 303)
        if note is not None:
            told = quote(note[:_LONGEST_NOTE], safe="")
            self.keep(answer, NOTE_COOKIE, told, max_age=60)
        return answer

    def _time(self, at: datetime | None, zone: str | None = None) -> Any:
        return words.time(at, ZoneInfo(zone) if zone else self.reader.zone)

    def _ago(self, at: datetime | None) -> Any:
        return words.ago(at, self.now, self.reader.zone)


async def _page(request: Request) -> Page:
    """Where the events stand is asked before anything that is shown: what happens later is told by them."""
    page = Page(request)
    if page.reader.caller is not None:
        page.position = await request.app.state.services.events.position()
    return page


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
