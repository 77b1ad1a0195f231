"""The door: who may knock, how much may be carried in, and that it is JSON; before any route is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonday.api.door.cookies import proven, session_of, told_origin
from noonday.api.problems import answer, refused
from noonday.api.strict_json import NotJson, parse
from noonday.domain.errors import Invalid

__all__ = ["BODY", "MAX_BODY", "PAGES", "SAFE", "Access", "Guard"]

MAX_BODY = 1 << 20
BODY = "noonday.body"  # in the scope of a request: its bytes
_MOST_DIGITS = 20  # of a length that is worth reading
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ALWAYS_OPEN = ("/health/live", "/health/ready")  # probes come by addresses nobody listed; they learn nothing
_VERSIONS = frozenset({"1.0", "1.1"})
_HANG_UP = {"Connection": "close"}
_WEBHOOK = "/api/v2/triggers/webhook"
PAGES = "/ui/"  # whose forms are forms
_JSON_LIKE = (
    "application/json",
    "application/x-www-form-urlencoded",
    "text/plain",
)  # curl -d sends the second


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Under which names this API answers. A foreign name in `Host` is a web page that tricks a browser."""

    host: str = "127.0.0.1"  # where it listens
    allowed_hosts: tuple[str, ...] = ()  # names, `*.example.com`, or `*`
    origins: tuple[str, ...] = ()  # of web pages that may call it beside its own

    def knows(self, host: str) -> bool:
        name = _without_port(host)
        if name == "localhost" or name.endswith(".localhost") or name == self.host.lower():
            return True
        if any(_fits(name, pattern.lower()) for pattern in self.allowed_hosts):
            return True
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return False
        # Rebinding needs a name: whoever listens on all addresses may be called by any of them.
        return address.is_loopback or self.host in ("0.0.0.0", "::")  # noqa: S104 (compared with, not bound to)


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::\d+)?")


def _without_port(host: str) -> str:
    """The name or address alone; nothing for what is no Host at all."""
    match = _HOST.fullmatch(host.strip().lower())
    return match[1] if match else ""


def _fits(name: str, pattern: str) -> bool:
    return pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))


class Guard:
    """ASGI middleware. Reads each body whole, within bounds, and hands it on as JSON that was checked."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        response = self._refused(scope, headers)
        if response is None:
            body = await _read(headers, receive)
            response = body if isinstance(body, Response) else _checked(scope, headers, body)
            scope[BODY] = body if isinstance(body, bytes) else b""
            receive = _replayed(scope[BODY], receive)
        await (response or self.app)(scope, receive, send)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self.access.knows(host) and scope["path"] not in _ALWAYS_OPEN:
            words = (
                f"this scheduler does not answer under the name {host[:100]!r}; ALLOWED_HOSTS lists its names"
            )
            return answer(421, words)
        if scope["method"] not in SAFE and not self._known_page(headers, host):
            return answer(403, "a page from another origin may not change anything here")
        if "\x00" in scope["path"] or b"\x00" in unquote_to_bytes(scope.get("query_string", b"")):
            return answer(400, "the address holds a NUL character")
        if scope.get("http_version", "1.1") not in _VERSIONS:
            return answer(400, f"HTTP/{scope['http_version']} is not spoken here", headers=_HANG_UP)
        if "content-length" in headers and "transfer-encoding" in headers:
            # Somebody on the way may have seen another end of it, and what follows may be forged.
            return answer(400, "the body has two lengths", headers=_HANG_UP)
        return None

    def _known_page(self, headers: Headers, host: str) -> bool:
        if session_of(headers) and not proven(headers):
            return _own_page(headers, host) and told_origin(headers)
        return headers.get("origin") in self.access.origins or _own_page(headers, host)


def _own_page(headers: Headers, host: str) -> bool:
    """Browsers say where a page comes from; programs say nothing."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


async def _read(headers: Headers, receive: Receive) -> bytes | Response:
    announced = headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > _MOST_DIGITS or int(announced) > MAX_BODY):
        return _too_much()
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return answer(400, "the body ended too early")
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MAX_BODY:
            return _too_much()
    return b"".join(parts)


def _too_much() -> Response:
    return answer(413, f"the body is larger than {MAX_BODY} bytes", headers=_HANG_UP)


def _checked(scope: Scope, headers: Headers, body: bytes) -> Response | None:
    if not body or _is_webhook(scope["path"]) or scope["path"].startswith(PAGES):
        return None
    media = headers.get("content-type", _JSON_LIKE[0]).partition(";")[0].strip().lower()
    if media not in _JSON_LIKE and not media.endswith("+json"):
        return answer(415, f"bodies are JSON here, not {media[:100]!r}")
    try:
        scope["noonday.json"] = parse(body)
    except NotJson as error:
        return answer(400, str(error), kind="not-json")
    except Invalid as error:
        return refused(error, None)
    MutableHeaders(scope=scope)["content-type"] = "application/json"
    return None


def _is_webhook(path: str) -> bool:
    """Senders choose the form of what they send, and sign it byte for byte."""
    return path == _WEBHOOK or path.startswith(f"{_WEBHOOK}/")


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
