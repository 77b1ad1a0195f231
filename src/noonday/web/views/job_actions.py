"""What people do with one job: each a form, and those that cannot be taken back ask first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.services import Ask
from noonday.api.strict_json import NotJson, parse
from noonday.control.secrets import redacted, restored
from noonday.control.snapshots import difference
from noonday.domain.access import Right
from noonday.domain.errors import Invalid, Problem
from noonday.web import diffs, words
from noonday.web.forms import Sent
from noonday.web.pages import Page, Show
from noonday.web.pauses import until_of
from noonday.web.views.job import Ref, TypedTrigger, address_of, pretty, shown, triggers_of
from noonday.web.views.triggers import kind_of

router = APIRouter(include_in_schema=False, prefix="/ui/jobs/{job}")

To = Annotated[int, Query(ge=1, le=(1 << 31) - 1)]


@router.get("/run", dependencies=[needs(Right.RUN)])
async def ask_config(job: Ref, show: Show, ask: Ask) -> Response:
    found = await ask.jobs.get(job)
    return await _run_form(job, show, ask, pretty(redacted(dict(found.config))))


async def _run_form(job: str, show: Page, ask: Ask, config: str, wrong: str | None = None) -> Response:
    return await shown(ask, show, job, "run", 422 if wrong else 200, config=config, wrong=wrong)


@router.post("/run", dependencies=[needs(Right.RUN)])
async def run(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    found = await ask.jobs.get(job)
    text = sent.text("config")
    try:
        config = _config(text, found.config) if text else None
    except Invalid as error:
        return await _run_form(job, show, ask, text, error.problems[0].message)
    started = await ask.jobs.force_run(found.id, who.name, config)
    return show.back_to(f"/ui/runs/{started.id}", f"{found.name} runs now. This is the run.")


def _config(text: str, stored: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None if it is what the job has anyway; a mask stands for the secret behind it."""
    try:
        given = parse(text.encode())
    except NotJson as error:
        raise Invalid(Problem("config", str(error).removeprefix("the body "))) from error
    if not isinstance(given, dict):
        raise Invalid(Problem("config", "must be a JSON object, in braces"))
    made: Mapping[str, Any] = restored(given, stored, "config")
    return None if made == stored else made


@router.get("/pause", dependencies=[needs(Right.OPERATE)])
async def ask_pause(job: Ref, show: Show, ask: Ask) -> Response:
    return await shown(ask, show, job, "pause", until="", wrong=None)


@router.post("/pause", dependencies=[needs(Right.OPERATE)])
async def pause(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    try:
        until = until_of(sent, show.reader.zone)
        paused = await ask.jobs.pause(job, who.name, until=until)
    except Invalid as error:
        typed, wrong = sent.text("until"), error.problems[0].message
        return await shown(ask, show, job, "pause", 422, until=typed, wrong=wrong)
    end = "until somebody resumes it" if until is None else f"until {words.moment(until, show.reader.zone)}"
    return show.back_to(address_of(paused), f"{paused.name} is paused {end}.")


@router.post("/resume", dependencies=[needs(Right.OPERATE)])
async def resume(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    resumed = await ask.jobs.resume(job, who.name, catch_up=sent.checked("catch_up"))
    return show.back_to(address_of(resumed), f"{resumed.name} goes on.")


@router.post("/skip-next", dependencies=[needs(Right.OPERATE)])
async def skip_next(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    """The run that the button named; if that is not the next any more, none."""
    standing = await ask.insights.standing(job)
    due, seen = standing.next_at, sent.text("at")
    if due is not None and seen and seen != due.isoformat():
        name = standing.job.name
        return show.back_to(
            address_of(standing.job), f"Nothing is skipped: {name} has another next run by now."
        )
    left = await ask.jobs.skip_next(job, who.name)
    when = "" if due is None else f" at {words.moment(due, show.reader.zone)}"
    return show.back_to(address_of(left), f"The next run of {left.name}{when} will not happen.")


@router.post("/retry", dependencies=[needs(Right.RUN)])
async def retry(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    started = await ask.jobs.retry(job, who.name)
    return show.back_to(f"/ui/runs/{started.id}", "It is tried again. This is the new run.")


@router.post("/enable", dependencies=[needs(Right.OPERATE)])
async def enable(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    changed = await ask.jobs.enable(job, who.name)
    return show.back_to(address_of(changed), f"The schedule of {changed.name} is switched on.")


@router.post("/disable", dependencies=[needs(Right.OPERATE)])
async def disable(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    changed = await ask.jobs.disable(job, who.name)
    return show.back_to(address_of(changed), f"The schedule of {changed.name} is switched off.")


@router.get("/cancel", dependencies=[needs(Right.OPERATE)])
async def ask_cancel(job: Ref, show: Show, ask: Ask) -> Response:
    return await shown(ask, show, job, "confirm", action="cancel", verb="Cancel")


@router.post("/cancel", dependencies=[needs(Right.OPERATE)])
async def cancel(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    ended = await ask.jobs.cancel(job, who.name)
    return show.back_to(address_of(ended), f"{ended.name} is cancelled for good.")


@router.get("/delete", dependencies=[needs(Right.EDIT)])
async def ask_delete(job: Ref, show: Show, ask: Ask) -> Response:
    return await shown(ask, show, job, "confirm", action="delete", verb="Delete")


@router.post("/delete", dependencies=[needs(Right.EDIT)])
async def delete(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    gone = await ask.jobs.remove(job, who.name)
    return show.back_to("/ui/jobs", f"{gone.name} is deleted, with its history.")


@router.get("/revert", dependencies=[needs(Right.EDIT)])
async def ask_revert(job: Ref, show: Show, ask: Ask, who: Who, to: To = 1) -> Response:
    verb = ask.audit.revert(job, to, who.name)
    seen = await ask.jobs.rehearse(verb, job)
    assert seen.before is not None
    assert seen.after is not None
    made = diffs.changes(*difference(seen.before, seen.after))
    return await shown(ask, show, job, "revert", to=to, made=made, kept_secrets=verb.kept_secrets)


@router.post("/revert", dependencies=[needs(Right.EDIT)])
async def revert(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    to, seen = sent.text("to"), sent.text("revision")
    if not (to.isdecimal() and seen.isdecimal()):
        raise Invalid(Problem("to", "is no revision"))
    made = await ask.jobs.do(ask.audit.revert(job, int(to), who.name, int(seen)))
    return show.back_to(address_of(made, "history"), f"{made.name} is as it was in revision {to}.")


@router.post("/triggers", dependencies=[needs(Right.EDIT)])
async def register(job: Ref, show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    kind, pattern = kind_of(sent), sent.text("pattern")
    try:
        made = await ask.triggers.register(kind, job, pattern, who.name)
    except Invalid as error:
        typed = TypedTrigger(kind=kind.value, pattern=pattern, wrong=error.problems[0].message)
        return await triggers_of(ask, show, job, typed, 422)
    return show.back_to(address_of(made, "triggers"), f"{made.name} now waits for {pattern}.")


@router.post("/triggers/remove", dependencies=[needs(Right.EDIT)])
async def unregister(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    left, _ = await ask.triggers.remove(job, who.name)
    return show.back_to(address_of(left, "triggers"), f"{left.name} waits for no call and no message.")
