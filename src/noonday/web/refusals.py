"""A refusal as a page: people get words and a way on, and whoever is not known is asked to sign in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import FastAPI, Request, Response
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonday.api import problems
from noonday.api.door.cookies import told_origin
from noonday.api.door.form_tokens import FORM_FIELD, KIND
from noonday.api.door.guard import BODY
from noonday.web.pages import Page

__all__ = ["LOGIN", "Refusals", "install", "safe_address"]

LOGIN: Final = "/ui/login"
_FOR_PROGRAMS: Final = ("/api", "/health", "/metrics", "/openapi.json")
_WORDS: Final[Mapping[int, tuple[str, str]]] = {  # a heading, and what one may do about it
    400: ("This cannot be read", "Go back and try again."),
    403: ("You may not do this", "Ask somebody who looks after this scheduler for a role that may."),
    404: ("Nothing found", "It may have been deleted, or the address may be mistyped."),
    405: ("This cannot be done here", "Go back and use the buttons of the page."),
    409: (
        "That does not fit any more",
        "Somebody or something was faster. Look at what there is now, then decide again.",
    ),
    412: ("It was changed since you looked", "Look at what there is now, then decide again."),
    413: ("That is too much", "Send less at once."),
    421: ("Another name is used here", "Call the scheduler by one of the names that its settings list."),
    422: ("Something is not right yet", "Go back, put it right and send it again."),
    429: ("Too fast", "Wait a moment, then try again."),
    500: (
        "Something went wrong inside",
        "It was not your fault. The log of the scheduler says more, under the number of this request.",
    ),
    503: (
        "The scheduler cannot answer just now",
        "Something that it needs is down or switched off. Try again in a moment.",
    ),
}
_LONGEST: Final = 2000  # characters of an address
_MOST: Final = 2000  # fields
_KEPT: Final = ("allow", "retry-after")  # headers of a refusal
_OTHERWISE: Final = ("That did not work", "Go back and try again.")
_OLD_PAGE: Final = (
    "This page was out of date",
    "Nothing was done: since it was opened you signed in or out, or your browser forgot its cookies. What "
    "you sent is kept, so send it again if you meant it.",
)
_LOAD_AGAIN: Final = "Go back, load the page again and send it once more."


class Refusals:
    """ASGI middleware: turns problem+json into a page where a person reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _reads_pages(scope):
            await self.app(scope, receive, send)
            return
        held: list[Message] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_problem(message):
                held.append(message)
            elif not held:
                await send(message)
            else:
                held.append(message)
                if not message.get("more_body", False):
                    await _page(scope, held)(scope, receive, send)

        await self.app(scope, receive, watched)


def install(app: FastAPI) -> None:
    """Just inside of what packs answers; and what nobody foresaw is answered outside of all middleware."""
    app.user_middleware.insert(1, Middleware(Refusals))
    plain: Any = app.exception_handlers[Exception]

    async def defect(request: Request, error: Exception) -> Response:
        answer: Response = await plain(request, error)
        if not _reads_pages(request.scope):
            return answer
        return _shown(Page(request), json.loads(bytes(answer.body)))

    app.add_exception_handler(Exception, defect)


def safe_address(given: str, otherwise: str = "/") -> str:
    """A page of ours, whatever somebody has written into a link."""
    plain = given.startswith("/") and not given.startswith("//") and given.isprintable()
    ours = plain and "\\" not in given and not _for_programs(re.split("[?#]", given)[0])
    return given if ours and len(given) <= _LONGEST else otherwise


def _reads_pages(scope: Scope) -> bool:
    return not _for_programs(scope["path"]) and "text/html" in Headers(scope=scope).get("accept", "")


def _for_programs(path: str) -> bool:
    return any(path == start or path.startswith(f"{start}/") for start in _FOR_PROGRAMS)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith(problems.MEDIA_TYPE)


def _page(scope: Scope, held: list[Message]) -> Response:
    page = Page(Request(scope))
    problem = json.loads(b"".join(message.get("body", b"") for message in held[1:]))
    unknown = held[0]["status"] == 401 or (_of_old_page(problem) and scope["path"] == LOGIN)
    answer = _to_login(page) if unknown else _shown(page, problem)
    headers = Headers(raw=held[0]["headers"])
    answer.headers.update({name: headers[name] for name in _KEPT if name in headers})
    return answer


def _to_login(page: Page) -> Response:
    """Back to where one was going; after a form, to the page that had it, for nothing was done."""
    request = page.request
    if request.method in ("GET", "HEAD"):
        wanted, word = _here(request), None
    else:
        wanted = _came_from(request) or "/"
        word = "You are not signed in any more, so nothing was done. Sign in and send it again."
    if wanted.partition("?")[0] in ("/", LOGIN):
        return page.back_to(LOGIN, word)
    return page.back_to(f"{LOGIN}?next={quote(wanted)}", word)


def _shown(page: Page, problem: Mapping[str, Any]) -> Response:
    heading, advice = _WORDS.get(problem["status"], _OTHERWISE)
    again = _sent_again(page.request) if _of_old_page(problem) else None
    if _of_old_page(problem):
        heading, advice = _OLD_PAGE[0], _OLD_PAGE[1] if again is not None else _LOAD_AGAIN
    request = page.request
    return page.html(
        "refused.html",
        problem["status"],
        heading=heading,
        advice=advice,
        detail=_sentence(problem["detail"]),
        problem=problem,
        errors=problem.get("errors", []),
        back=_came_from(request),
        again=again,
        here=safe_address(_here(request)),
        reading=request.method in ("GET", "HEAD"),
    )


def _of_old_page(problem: Mapping[str, Any]) -> bool:
    return str(problem["type"]).endswith(f":{KIND}")


def _sent_again(request: Request) -> list[tuple[str, str]] | None:
    """The fields of a form that a page of ours has sent, for a person to send once more."""
    if not told_origin(request.headers):
        return None
    try:
        fields = parse_qsl(
            request.scope.get(BODY, b"").decode(), keep_blank_values=True, max_num_fields=_MOST
        )
    except ValueError:
        return None
    return [(name, value) for name, value in fields if name != FORM_FIELD]


def _sentence(text: str) -> str:
    return text if not text or text[-1] in ".!?" else f"{text[0].upper()}{text[1:]}."


def _came_from(request: Request) -> str | None:
    """The page of ours that led here, for those who cannot press Back."""
    parts = urlsplit(request.headers.get("referer", ""))
    address = _address(parts.path, parts.query)
    if parts.netloc != request.headers.get("host") or address == _here(request):
        return None
    return safe_address(address, "/")


def _here(request: Request) -> str:
    return _address(quote(request.scope["path"]), request.url.query)


def _address(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path
