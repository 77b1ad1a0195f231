"""The token of a form: only a page of ours can have made it, and only for the browser that sends it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from noonday.api.door.cookies import SESSION_COOKIE, cookies_of, proven, session_of
from noonday.api.door.guard import BODY, PAGES, SAFE
from noonday.api.problems import answer

__all__ = ["FORM_COOKIE", "FORM_FIELD", "FORM_HEADER", "KIND", "FormTokens", "bound_to", "form_token"]

FORM_COOKIE: Final = "noonday_form"  # of a browser that is not signed in: its tokens are bound to this
FORM_FIELD: Final = "form_token"
FORM_HEADER: Final = "X-Form-Token"  # for scripts of our pages that send no form
KIND: Final = "form-token"  # of the problem
_SALT: Final = 16  # characters: another token for each page, so that packed answers tell nothing of it
_MOST: Final = 5000  # fields


def bound_to(cookies: Mapping[str, str]) -> str:
    """What tokens of this browser are bound to: its session, or else a cookie that stands for the browser."""
    return cookies.get(SESSION_COOKIE) or cookies.get(FORM_COOKIE, "")


def form_token(bound: str) -> str:
    salt = secrets.token_hex(_SALT // 2)
    return salt + _signed(bound, salt)


class FormTokens:
    """Asks for the token where a browser could be made to ask: by a form of the pages, or by a session."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = scope["type"] == "http" and _asked_for(scope) and not _fits(scope)
        words = "the page this came from is out of date, so nothing was done"
        await (answer(403, words, kind=KIND) if refused else self.app)(scope, receive, send)


def _asked_for(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    if scope["method"] in SAFE or proven(headers):
        return False
    return scope["path"].startswith(PAGES) or bool(session_of(headers))


def _fits(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    bound = bound_to(cookies_of(headers))
    given = headers.get(FORM_HEADER) or _field(scope.get(BODY, b""))
    good = _signed(bound, given[:_SALT])
    return bool(bound) and hmac.compare_digest(good.encode(), given[_SALT:].encode())


def _field(body: bytes) -> str:
    try:
        fields = parse_qsl(body.decode("latin-1"), max_num_fields=_MOST)
    except ValueError:
        return ""
    return dict(fields).get(FORM_FIELD, "")


def _signed(bound: str, salt: str) -> str:
    return hmac.new(bound.encode(), salt.encode(), "sha256").hexdigest()
