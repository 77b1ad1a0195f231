"""`Idempotency-Key`: a POST that comes again gets the answer of the first one, and nothing happens twice."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonday.api.callers import CALLER
from noonday.api.problems import refused
from noonday.control.replays import Answer, Answers, Claim
from noonday.domain.access import Caller
from noonday.domain.errors import NoondayError, invalid

__all__ = ["HEADER", "Replays", "remembers"]

HEADER: Final = "Idempotency-Key"
_KEY = re.compile(r'"([\x21\x23-\x7e]{1,255})"|([\x21\x23-\x7e]{1,255})')  # as a structured field, or bare
# Deliveries and callbacks prove and name themselves, and a new API key is shown once and kept nowhere.
_EXEMPT = re.compile(
    r"/api/v2/(?:(?:triggers/webhook|keys)(?:/.*)?|executions/[^/]+/(?!cancel$).*)", re.DOTALL
)
# Refusals before anything was looked at, and those that say: come again. A key for each would fill the table.
_NOT_KEPT: Final = frozenset({401, 403, 404, 405, 408, 425, 429})
_LONGEST_BODY: Final = 4 << 20
_TOO_LONG: Final = '{"detail": "it was done, but the answer was too long to be remembered"}'


def remembers(method: str, path: str) -> bool:
    """Does a key mean anything there?"""
    return method == "POST" and _EXEMPT.fullmatch(path) is None


class Replays:
    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self.app = app
        self.answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope.get(CALLER)
        key = Headers(scope=scope).get(HEADER) if scope["type"] == "http" else None
        if key is None or caller is None or not remembers(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        try:
            found = await self.answers.begin(_id(caller, scope, _read(key)), _fingerprint(scope))
        except NoondayError as error:
            await refused(error, None)(scope, receive, send)
            return
        if isinstance(found, Answer):
            await _again(found)(scope, receive, send)
        else:
            await self._answer(found, scope, receive, send)

    async def _answer(self, claim: Claim, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer goes out once it is remembered: whoever has heard it hears the same one again."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        try:
            async with self.answers.held(claim):
                await self.app(scope, receive, collect)
        except Exception:
            await self.answers.free(claim)
            raise
        given = _given(messages)
        if given.status >= 500 or given.status in _NOT_KEPT:
            await self.answers.free(claim)
        else:
            await self.answers.finish(claim, given)
        for message in messages:
            await send(message)


def _read(key: str) -> str:
    match = _KEY.fullmatch(key.strip())
    if match is None:
        raise invalid(HEADER, key, "is not a key: send 1 to 255 visible characters, such as a UUID")
    return match[1] or match[2]


def _id(caller: Caller, scope: Scope, key: str) -> str:
    """What one caller calls by this key at this address; with other rights it is another caller."""
    parts = [caller.name, caller.role.value, caller.service, scope["method"], scope["path"], key]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _fingerprint(scope: Scope) -> str:
    """What was asked, however its JSON was written down."""
    parts = [scope.get("query_string", b"").decode("latin-1"), scope.get("noonday.json")]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _given(messages: list[Message]) -> Answer:
    start, *rest = messages
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
    body = b"".join(message.get("body", b"") for message in rest)
    kept = body.decode("utf-8", "replace") if len(body) <= _LONGEST_BODY else _TOO_LONG
    return Answer(status=start["status"], headers=headers, body=kept)


def _again(answer: Answer) -> Response:
    response = Response(answer.body, answer.status)
    response.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers
        if name.lower() != "content-length"
    ]
    if answer.body:
        response.headers["Content-Length"] = str(len(response.body))
    response.headers["Idempotency-Replayed"] = "true"
    return response
