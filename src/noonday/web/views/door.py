"""`/ui/login`: a key or a token, and a browser is signed in; and the addresses that lead to a page."""

from __future__ import annotations

from typing import Annotated, Final

import structlog
from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers

from noonday.api.callers import needs, open_to_all
from noonday.api.door.cookies import SESSION_COOKIE
from noonday.api.door.guesses import TooManyGuesses, address_of
from noonday.api.door.token_texts import end_of
from noonday.api.services import Ask
from noonday.domain.access import ANYBODY, Right
from noonday.domain.errors import NotAllowed, Unidentified
from noonday.domain.keys import START
from noonday.web.agents import plain
from noonday.web.forms import Sent
from noonday.web.pages import Page, Show
from noonday.web.refusals import LOGIN, safe_address

router = APIRouter(include_in_schema=False)

log = structlog.get_logger(__name__)

_LONGEST_PROOF: Final = 8000

Next = Annotated[str, Query(max_length=4000)]


@router.get(LOGIN, dependencies=[open_to_all])
async def login(show: Show, next: Next = "/") -> Response:
    if show.reader.caller is not None:  # signed in, or the API is open and nobody has to be
        return show.back_to(safe_address(next))
    return _form(show, next)


@router.post(LOGIN, dependencies=[open_to_all])
async def sign_in(show: Show, ask: Ask, sent: Sent) -> Response:
    proof, next = sent.text("proof"), sent.text("next")
    if show.reader.caller is ANYBODY:
        return show.back_to(safe_address(next), "This scheduler is open: nobody has to sign in.")
    if not proof or len(proof) > _LONGEST_PROOF or not proof.isascii() or " " in proof:
        return _form(show, next, "Paste an API key or a token.")
    try:
        shown = Headers({"authorization": f"Bearer {proof}"})
        caller = await ask.guesses(shown, address_of(show.request.scope))
        assert caller is not None
        by_key = proof.startswith(START)
        session, cookie = await ask.sessions.begin(
            caller,
            key=proof if by_key else None,
            ends_at=None if by_key else end_of(proof),
            agent=plain(show.request.headers.get("user-agent", "")),
        )
    except Unidentified as why:
        log.info("a caller was refused", action="sign_in", reason=str(why.__cause__ or why))
        return _form(show, next, "This key or token is not good, or is not good any more.")
    except TooManyGuesses as why:
        answer = _form(show, next, f"Too many bad keys or tokens: try again in {why.wait} seconds.", 429)
        answer.headers["Retry-After"] = str(why.wait)
        return answer
    except NotAllowed as why:
        return _form(show, next, f"{why}.")
    await ask.sessions.end(show.request.cookies.get(SESSION_COOKIE, ""))  # the one before
    log.info("signed in", action="sign_in", caller=caller.name, role=caller.role.value)
    answer = show.back_to(safe_address(next), f"You are signed in as {caller.name}.")
    lasts = int((session.expires_at - session.created_at).total_seconds())
    show.keep(answer, SESSION_COOKIE, cookie, max_age=lasts)
    return answer


@router.post("/ui/logout", dependencies=[open_to_all])
async def sign_out(show: Show, ask: Ask) -> Response:
    await ask.sessions.end(show.request.cookies.get(SESSION_COOKIE, ""))
    answer = show.back_to(LOGIN, "You are signed out.")
    answer.delete_cookie(SESSION_COOKIE, path="/")
    return answer


@router.get("/ui", dependencies=[needs(Right.READ)])
async def overview() -> Response:
    return RedirectResponse("/", 308)


@router.get("/admin/scheduler", dependencies=[needs(Right.READ)])
async def admin() -> Response:
    """Where the fleet's central cron service had its page."""
    return RedirectResponse("/ui/jobs", 307)


def _form(show: Page, next: str, wrong: str | None = None, status: int = 422) -> Response:
    return show.html("login.html", status if wrong else 200, next=safe_address(next), wrong=wrong)
