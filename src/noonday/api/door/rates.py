"""How often one caller may start something: a token bucket for each, on this instance."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonday.api.callers import CALLER
from noonday.api.door.guard import BODY
from noonday.api.problems import answer
from noonday.clock import Clock
from noonday.domain.access import Caller
from noonday.domain.rates import Bucket, Rate, Taking, take, whole_seconds

__all__ = ["Rates", "starts_something"]

_MOST_CALLERS: Final = 10_000  # whoever has not called for longest is forgotten
_PATHS = re.compile(
    r"/api/(?:v\d/)?jobs/[^/]+/(?:force-run|retry|trigger)"
    r"|/api/v2/triggers/webhook(?:/.*)?"
    r"|/ui/jobs/[^/]+/(?:run|retry)|/ui/runs/[^/]+/again|/ui/triggers/fire",
    re.DOTALL,
)
_BULK_FORM: Final = "/ui/bulk"
_ACTIONS: Final[Mapping[str, frozenset[str]]] = {  # where the body says what is to be done
    "/api/v2/jobs/bulk": frozenset({"run"}),
    "/api/admin/schedulers": frozenset({"trigger"}),
}


def starts_something(method: str, path: str, body: Any) -> bool:
    if method != "POST":
        return False
    actions = _ACTIONS.get(path.rstrip("/"))
    if actions is not None:
        acts = isinstance(body, dict) and body.get("dry_run") is not True
        return acts and str(body.get("action")).lower() in actions
    return _PATHS.fullmatch(path) is not None


class Rates:
    def __init__(self, app: ASGIApp, rate: Rate | None, clock: Clock) -> None:
        self.app = app
        self.rate = rate
        self.clock = clock
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.rate is None or scope["type"] != "http" or not _counts(scope):
            await self.app(scope, receive, send)
            return
        taking = self._take(_who(scope), self.rate)
        told = _telling(send, _headers(self.rate, taking))
        if not taking.wait:
            await self.app(scope, receive, told)
            return
        wait = max(1, whole_seconds(taking.wait))
        words = f"too many starts: {self.rate.calls} in {self.rate.seconds:.0f} seconds are allowed"
        refusal = answer(429, f"{words}; try again in {wait} s", headers={"Retry-After": str(wait)})
        await refusal(scope, receive, told)

    def _take(self, who: Hashable, rate: Rate) -> Taking:
        taking = take(self._buckets.pop(who, None), rate, self.clock.monotonic())
        self._buckets[who] = taking.bucket
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return taking


def _counts(scope: Scope) -> bool:
    if scope["path"] == _BULK_FORM:
        return scope["method"] == "POST" and _form_starts(scope.get(BODY, b""))
    return starts_something(scope["method"], scope["path"], scope.get("noonday.json"))


def _form_starts(body: bytes) -> bool:
    """A form is asked for its action: one job by its button, or several that were looked at before."""
    sent = parse_qs(body.decode("latin-1"))
    runs_one = any(value.startswith("run:") for value in sent.get("one", ()))
    return runs_one or ("run" in sent.get("action", ()) and "sure" in sent)


def _who(scope: Scope) -> Hashable:
    """Whoever brings only a signature is known by the address that it comes from."""
    caller: Caller | None = scope.get(CALLER)
    return caller or (scope.get("client") or ("",))[0]


def _headers(rate: Rate, taking: Taking) -> dict[str, str]:
    """As the IETF's draft on rate limits names them."""
    left, full_in = int(taking.bucket.left), whole_seconds(taking.full_in)
    return {
        "RateLimit-Policy": f'"triggers";q={rate.calls};w={rate.seconds:.0f}',
        "RateLimit": f'"triggers";r={left};t={full_in}',
    }


def _telling(send: Send, headers: Mapping[str, str]) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return told
