"""`/ui/bulk`: one action on the jobs that were selected, or on all that a search finds; looked at first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response

from noonday.api.callers import demand, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.bulk import RIGHTS, Action, Choice, Done, choose
from noonday.domain.access import Caller, Right
from noonday.domain.errors import invalid
from noonday.web.forms import Fields, Sent
from noonday.web.pages import Page, Show
from noonday.web.views.jobs import address_of

router = APIRouter(include_in_schema=False)

_DONE: Final[Mapping[Action, str]] = {
    Action.PAUSE: "paused",
    Action.RESUME: "resumed",
    Action.CANCEL: "cancelled",
    Action.RUN: "started",
    Action.DELETE: "deleted",
    Action.ENABLE: "switched on",
    Action.DISABLE: "switched off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    action: Action
    jobs: tuple[str, ...]  # ids; of `every`, those that the search finds
    every: bool
    q: str
    back: str
    at_once: bool  # one job by its own button

    def choice(self, show: Page, who: Caller) -> Choice:
        service = own_service(who)
        if not self.every:
            return choose(None, self.jobs, show.now, service=service, called="job")
        return choose(self.q, None, show.now, all=not self.q.strip(), service=service, called="q")


@router.post("/ui/bulk", dependencies=[needs(Right.RUN)])
async def bulk(show: Show, ask: Ask, request: Request, posted: Sent) -> Response:
    asked = _asked(posted)
    who = await demand(request, RIGHTS[asked.action])
    if not asked.jobs and not asked.every:
        return show.back_to(
            asked.back, "Nothing was selected. Tick some jobs, then choose what to do with them."
        )
    choice = asked.choice(show, who)
    if not asked.at_once and "sure" not in posted:
        seen = await ask.bulk.preview(choice)
        return show.html("bulk.html", asked=asked, seen=seen)
    expect = posted.text("expect")
    done = await ask.bulk.act(
        asked.action, choice, who.name, expect=int(expect) if expect.isdigit() else None
    )
    if done.failed and not asked.at_once:
        return show.html("bulk_done.html", asked=asked, done=done, told=_told(asked.action, done))
    return show.back_to(asked.back, _told(asked.action, done))


def _asked(posted: Fields) -> _Asked:
    q = posted.text("q")
    verb, _, job = posted.text("one").partition(":")
    if job:
        known = "from" in posted  # pressed in the list; else in the palette of any page
        back = address_of(q, posted.text("sort") or "name") if known else f"/ui/jobs/{job}"
        return _Asked(action=_action(verb), jobs=(job,), every=False, q=q, back=back, at_once=True)
    return _Asked(
        action=_action(posted.text("action")),
        jobs=tuple(dict.fromkeys(posted.texts("job"))),
        every="every" in posted,
        q=q,
        back=address_of(q, posted.text("sort") or "name"),
        at_once=False,
    )


def _action(word: str) -> Action:
    try:
        return Action(word)
    except ValueError:
        raise invalid("action", word, f"is not one of {', '.join(Action)}") from None


def _told(action: Action, done: Done) -> str:
    jobs = "1 job" if done.done == 1 else f"{done.done:,} jobs"
    parts = [f"{jobs} {_DONE[action]}"] if done.done or not done.failed else []
    if done.unchanged:
        parts.append(f"{done.unchanged:,} were so already")
    if len(done.failed) == 1:
        parts.append(f"{done.failed[0].name}: {done.failed[0].error}")
    elif done.failed:
        parts.append(f"{len(done.failed):,} could not be {_DONE[action]}")
    return "; ".join(parts) + "."
