"""`/ui/settings`: who am I, how pages look to me; keys, services, and the settings in force."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final
from zoneinfo import available_timezones

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from noonday.api.access import KeyBody, caller_json
from noonday.api.callers import Who, needs
from noonday.api.dialects.services import NewServiceBody, service_json
from noonday.api.door.cookies import SESSION_COOKIE
from noonday.api.services import Ask, Services
from noonday.domain.access import RIGHTS, Caller, Right, Role
from noonday.domain.errors import Conflict, Invalid, invalid
from noonday.web.agents import named
from noonday.web.forms import Fields, Sent
from noonday.web.pages import THEME_COOKIE, THEMES, YEAR, ZONE_COOKIE, Page, Show

router = APIRouter(include_in_schema=False)

HERE: Final = "/ui/settings"
_KEYS_SHOWN: Final = 50
_LIFETIMES: Final = {"": "never", "1": "in a day", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}
_HOLDERS: Final = {
    Role.VIEWER: "looks, and changes nothing",
    Role.OPERATOR: "looks after jobs",
    Role.ADMIN: "looks after the scheduler",
    Role.SERVICE: "one service, for its own jobs alone",
}

_START: Final = re.compile(r"^(Value error, |(Input|String) (?=should))")  # of pydantic's words

Offset = Annotated[int, Query(ge=0, le=1_000_000)]
KeyRef = Annotated[str, Path(max_length=200)]
ServiceRef = Annotated[str, Path(max_length=200)]


@router.get(HERE, dependencies=[needs(Right.READ)])
async def settings(show: Show, ask: Ask, who: Who, offset: Offset = 0, changed: bool = False) -> Response:
    return await _page(show, ask, who, offset=offset, changed=changed)


@router.post(f"{HERE}/reader", dependencies=[needs(Right.READ)])
async def choose(show: Show, sent: Sent) -> Response:
    """Theme and zone: they are the browser's own, so they are kept there."""
    answer = show.back_to(f"{HERE}#you", "Pages look as you chose.")
    theme = sent.text("theme")
    if theme not in THEMES:
        raise invalid("theme", theme, f"is none of {', '.join(THEMES)}")
    answer.set_cookie(THEME_COOKIE, theme, max_age=YEAR, samesite="lax")
    zone = {"mine": "", "utc": "UTC"}.get(sent.text("zone"), sent.text("other"))
    if not zone:
        answer.delete_cookie(ZONE_COOKIE)  # the browser tells its own with the next page
    elif zone in available_timezones():
        answer.set_cookie(ZONE_COOKIE, zone, max_age=YEAR, samesite="lax")
    else:
        raise invalid("zone", zone, "is not a time zone; write one such as Europe/Berlin")
    return answer


@router.post(f"{HERE}/sessions/end", dependencies=[needs(Right.READ)])
async def end_other_sessions(show: Show, ask: Ask) -> Response:
    session = await ask.sessions.find(show.request.cookies.get(SESSION_COOKIE, ""))
    ended = 0 if session is None else await ask.sessions.end_others(session)
    where = "in 1 other browser" if ended == 1 else f"in {ended:,} other browsers"
    return show.back_to(f"{HERE}#you", f"You are signed out {where}.")


@router.post(f"{HERE}/keys", dependencies=[needs(Right.ACCESS)])
async def create_key(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    """Shown in the answer itself: the key is kept nowhere, so there is nothing to lead to."""
    given = {"name": sent.text("name"), "role": sent.text("role"), "service": sent.text("service") or None}
    days = sent.text("days")
    try:
        body = KeyBody.model_validate(given)
        if days not in _LIFETIMES:
            raise invalid("days", days, "is not among the choices")
        ends = show.now + timedelta(days=int(days)) if days else None
        made, text = await ask.keys.create(
            body.name, body.role, service=body.service, expires_at=ends, by=who.name
        )
    except (Invalid, Conflict, ValidationError) as error:
        return await _page(show, ask, who, wrong_key=_wrong(error), typed=sent)
    show.now = made.created_at
    return await _page(show, ask, who, made=made, secret=text)


@router.post(f"{HERE}/keys/{{key}}/revoke", dependencies=[needs(Right.ACCESS)])
async def revoke_key(show: Show, ask: Ask, who: Who, key: KeyRef) -> Response:
    revoked = await ask.keys.revoke(key, who.name)
    return show.back_to(f"{HERE}#keys", f"The key {revoked.prefix} of {revoked.name} is revoked.")


@router.post(f"{HERE}/services", dependencies=[needs(Right.MANAGE)])
async def set_service(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    given = {name: sent.text(name) for name in ("name", "url", "description")}
    try:
        body = NewServiceBody.model_validate(given)
        known = await ask.service_urls.put(body.name, body.url, body.description, who.name)
    except (Invalid, Conflict, ValidationError) as error:
        return await _page(show, ask, who, wrong_service=_wrong(error), typed=sent)
    return show.back_to(f"{HERE}#services", f"{known.name} lives at {known.url}.")


@router.post(f"{HERE}/services/{{service}}/remove", dependencies=[needs(Right.MANAGE)])
async def remove_service(show: Show, ask: Ask, who: Who, service: ServiceRef) -> Response:
    await ask.service_urls.remove(service, who.name)
    return show.back_to(f"{HERE}#services", f"It is forgotten where {service} lives.")


async def _page(
    show: Page, ask: Services, who: Caller, *, offset: int = 0, changed: bool = False, **shown: Any
) -> Response:
    """`shown` tells what became of a form: a key that was made, or what is wrong and what was typed."""
    everyone = await ask.service_urls.everyone()
    session = await ask.sessions.find(show.request.cookies.get(SESSION_COOKIE, ""))
    lines = ask.settings() if who.may(Right.MANAGE) else ()
    usual: dict[str, Any] = {
        "made": None,
        "secret": None,
        "wrong_key": {},
        "wrong_service": {},
        "typed": Fields(),
    }
    return show.html(
        "settings.html",
        422 if "typed" in shown else 201 if "made" in shown else 200,
        **usual | shown,
        me=caller_json(who),
        session=session,
        sessions=await ask.sessions.of_same(session) if session else [],
        named=named,
        keys=await ask.keys.page(limit=_KEYS_SHOWN, offset=offset) if who.may(Right.ACCESS) else None,
        services=[service_json(known) for known in everyone if who.owns(known.name)],
        lines=[line for line in lines if not changed or line.origin != "default"],
        changed=changed,
        themes=THEMES,
        zones=sorted(available_timezones()),
        zone_told=show.request.cookies.get(ZONE_COOKIE),
        roles={role.value: (words, ", ".join(sorted(RIGHTS[role]))) for role, words in _HOLDERS.items()},
        lifetimes=_LIFETIMES,
    )


def _wrong(error: Invalid | Conflict | ValidationError) -> dict[str, str]:
    """Words for each field; what concerns none of them stands at the name."""
    if isinstance(error, Invalid):
        return {problem.field: problem.message for problem in error.problems}
    if isinstance(error, ValidationError):
        lines = error.errors()
        return {str(line["loc"][0]): _START.sub("", line["msg"]) for line in lines}
    return {"name": str(error)}
