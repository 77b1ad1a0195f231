"""`/ui/triggers`: which calls and messages start which jobs, what was delivered, and trying a path."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask, Services
from noonday.domain.access import Caller, Right
from noonday.domain.errors import Conflict, Invalid, NotFound
from noonday.domain.trigger import event_of
from noonday.store.registrations import Kind, Registration
from noonday.store.webhooks import Call
from noonday.web.forms import Fields, Sent
from noonday.web.pages import Page, Show

router = APIRouter(include_in_schema=False)

HOME: Final = "/ui/triggers"
_PAGE: Final = 50
_DELIVERED: Final = 20

Path = Annotated[str, Query(max_length=512)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Typed:
    """What a form was filled with, and what is wrong with it, by field."""

    job: str = ""
    kind: str = Kind.WEBHOOK.value
    pattern: str = ""
    wrong: dict[str, str] = field(default_factory=dict)


_BLANK: Final = _Typed()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where each of the three lists begins."""

    webhooks: int = 0
    channels: int = 0
    deliveries: int = 0


@router.get(HOME, dependencies=[needs(Right.READ)])
async def triggers(
    show: Show,
    ask: Ask,
    who: Who,
    path: Path = "",
    webhooks: Offset = 0,
    channels: Offset = 0,
    deliveries: Offset = 0,
) -> Response:
    places = _Places(webhooks=webhooks, channels=channels, deliveries=deliveries)
    return await _shown(show, ask, who, places=places, path=path.strip())


@router.post(f"{HOME}/register", dependencies=[needs(Right.EDIT)])
async def register(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    kind = kind_of(sent)
    job, pattern = sent.text("job"), sent.text("pattern")
    try:
        made = await ask.triggers.register(kind, job, pattern, who.name)
    except Invalid as error:
        wrong = {"pattern": error.problems[0].message}
    except (NotFound, Conflict) as error:
        wrong = {"job": str(error)}
    else:
        what = "Calls of" if kind is Kind.WEBHOOK else "Messages on"
        found = made.trigger.webhook if kind is Kind.WEBHOOK else made.trigger.channel
        return show.back_to(HOME, f"{what} {found} start {made.name}.")
    typed = _Typed(job=job, kind=kind.value, pattern=pattern, wrong=wrong)
    return await _shown(show, ask, who, typed=typed)


@router.post(f"{HOME}/jobs/{{job}}/remove", dependencies=[needs(Right.EDIT)])
async def remove(job: str, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    kind = kind_of(sent)
    changed, _ = await ask.triggers.remove(job, who.name, kind)
    what = "Calls" if kind is Kind.WEBHOOK else "Messages"
    return show.back_to(HOME, f"{what} do not start {changed.name} any more; its schedule stays.")


@router.post(f"{HOME}/fire", dependencies=[needs(Right.RUN)])
async def fire(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    """A call by hand: it starts what a sender's would."""
    body = sent.text("data").encode()
    call = Call(path=sent.text("path"), event=event_of(body), size=len(body), service=own_service(who))
    try:
        receipt = await ask.triggers.deliver(call)
    except Invalid:
        return await _shown(show, ask, who, path=call.path)
    started = len(receipt.delivery.started)
    what = f"{started:,} {'job' if started == 1 else 'jobs'} started" if started else "No job waits for it"
    return show.back_to(f"{HOME}#deliveries", f"{receipt.delivery.path} was called. {what}.")


def kind_of(sent: Fields) -> Kind:
    return Kind.CHANNEL if sent.text("kind") == Kind.CHANNEL else Kind.WEBHOOK


async def _shown(
    show: Page,
    ask: Services,
    who: Caller,
    *,
    places: _Places | None = None,
    path: str = "",
    typed: _Typed = _BLANK,
) -> Response:
    own, places = own_service(who), places or _Places()
    webhooks, channels, tested = await asyncio.gather(
        ask.triggers.registered(Kind.WEBHOOK, limit=_PAGE, offset=places.webhooks, service=own),
        ask.triggers.registered(Kind.CHANNEL, limit=_PAGE, offset=places.channels, service=own),
        _tested(ask, path, own),
    )
    delivered = None  # they tell of everybody's jobs
    if own is None:
        delivered = await ask.triggers.deliveries(limit=_DELIVERED, offset=places.deliveries)
    return show.html(
        "triggers.html",
        422 if typed.wrong or tested.wrong else 200,
        webhooks=webhooks,
        channels=channels,
        delivered=delivered,
        tested=tested,
        typed=typed,
        signed=bool(ask.webhook_secrets),
        heard=ask.pubsub_enabled,
        server=str(show.request.base_url).rstrip("/"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """A path that was tried, as it is understood, and who waits for it."""

    path: str = ""
    found: list[Registration] = field(default_factory=list)
    wrong: str | None = None


async def _tested(ask: Services, path: str, own: str | None) -> _Tested:
    if not path:
        return _Tested()
    try:
        plain, found = await ask.triggers.waiting_for(path, own)
    except Invalid as error:
        return _Tested(path=path, wrong=error.problems[0].message)
    return _Tested(path=plain, found=found)
