"""`/ui/new` and `/ui/jobs/{job}/edit`: a job is written, its schedule explained, the change looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from noonday.api.bodies import JobBody
from noonday.api.callers import Who, needs
from noonday.api.rehearsing import changes as changed_fields
from noonday.api.schedules import to_timing
from noonday.api.schemas import apply_body, to_job
from noonday.api.services import Ask, Services
from noonday.api.targets import target_json
from noonday.control.errors import Outdated
from noonday.control.jobs import Verb
from noonday.control.previewing import cron_parts, explained
from noonday.control.rehearsal import Rehearsal
from noonday.domain.access import Caller, Right
from noonday.domain.errors import Conflict, Invalid
from noonday.domain.explain import explain
from noonday.domain.job import Job, JobId
from noonday.ids import new_id
from noonday.store.jobs import JobFilter
from noonday.web.collisions import collisions
from noonday.web.diffs import Change, changes
from noonday.web.forms import Fields, Sent
from noonday.web.job_fields import body_of, field_of, schedule_of
from noonday.web.job_values import fresh_values, values_of
from noonday.web.pages import Page, Show
from noonday.web.zones import zone_names

router = APIRouter(include_in_schema=False)

_TIMES: Final = 10
_EXAMPLE: Final = {
    "name": "hello",
    "schedule_type": "interval",
    "interval_minutes": 10,
    "interval_type": "seconds",
    "target": {"type": "command", "argv": ["echo", "on the dot"]},
}
JobRef = Annotated[str, Path(alias="job", max_length=200)]
From = Annotated[str | None, Query(alias="from", max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What the page of a form shows; without a `job` it is one of a new job."""

    values: Mapping[str, str]
    job: Job | None = None
    revision: int = 0
    errors: Mapping[str, list[str]] = field(default_factory=dict)  # by the name of the input
    refused: str = ""  # what is wrong with the whole


@router.get("/ui/new", dependencies=[needs(Right.EDIT)])
async def new(show: Show, ask: Ask, source: From = None) -> Response:
    values = fresh_values(show.reader.zone.key, ask.defaults)
    if source is not None:
        job = await ask.jobs.get(source)
        values |= {**await _values(ask, job), "name": f"{job.name}-copy"[:200]}
    return await _form(show, ask, _Form(values=values))


@router.post("/ui/new", dependencies=[needs(Right.EDIT)])
async def create(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    form = _Form(values=_sent_values(sent))
    if sent.text("do") in ("preview", "edit"):
        return await _form(show, ask, form)
    try:
        job = to_job(body_of(sent), JobId(new_id(show.now)), show.now, ask.defaults)
        if sent.text("do") == "review":
            seen = await ask.jobs.rehearse(partial(ask.jobs.created, job=job, by=who.name))
            return await _review(show, sent, seen, form)
        made = await ask.jobs.create(job, who.name)
    except (Invalid, Conflict) as error:
        return await _form(show, ask, _wrong(form, error), error)
    return show.back_to(f"/ui/jobs/{quote(made.name, safe='')}", f"{made.name} was made.")


@router.post("/ui/new/example", dependencies=[needs(Right.EDIT)])
async def example(show: Show, ask: Ask, who: Who) -> Response:
    """The job of the first steps."""
    body = JobBody.model_validate(_EXAMPLE)
    made = await ask.jobs.create(to_job(body, JobId(new_id(show.now)), show.now, ask.defaults), who.name)
    return show.back_to(f"/ui/jobs/{made.name}", f"{made.name} was made. It runs every ten seconds.")


@router.get("/ui/jobs/{job}/edit", dependencies=[needs(Right.EDIT)])
async def edit(show: Show, ask: Ask, job: JobRef) -> Response:
    found = await ask.jobs.get(job)
    return await _form(show, ask, _Form(values=await _values(ask, found), job=found, revision=found.revision))


@router.post("/ui/jobs/{job}/edit", dependencies=[needs(Right.EDIT)])
async def change(show: Show, ask: Ask, who: Who, job: JobRef, sent: Sent) -> Response:
    old = await ask.jobs.get(job)
    form = _Form(values=_sent_values(sent), job=old, revision=_revision(sent, old))
    if sent.text("do") in ("preview", "edit"):
        return await _form(show, ask, form)
    try:
        verb = await _edit(ask, who, sent, form)
        if sent.text("do") != "save":
            seen = await ask.jobs.rehearse(verb, old.id)
            return await _review(show, sent, seen, form)
        made = await ask.jobs.do(verb)
    except Outdated:
        return await _outdated(show, ask, who, sent, old)
    except (Invalid, Conflict) as error:
        return await _form(show, ask, _wrong(form, error), error)
    return show.back_to(f"/ui/jobs/{quote(made.name, safe='')}", f"{made.name} was changed.")


@router.post("/ui/preview", dependencies=[needs(Right.READ)])
async def preview(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    """The part of the form that explains the schedule, while somebody types."""
    shown = await _explained(show, ask, who, sent, sent.text("job"))
    return show.html("job_explained.html", **shown)


async def _edit(ask: Services, who: Caller, sent: Fields, form: _Form) -> Verb:
    assert form.job is not None
    now = ask.clock.now()
    body = body_of(sent, target_json(form.job.target))
    ids = {name: JobId(one) for one, name in (await _parents(ask, form.job)).items()}

    def edited(current: Job) -> Job:
        new = apply_body(body, current, now, ask.defaults)
        return replace(
            new,
            depends_on=tuple(ids.get(one, one) for one in new.depends_on),
            on_success_of=tuple(ids.get(one, one) for one in new.on_success_of),
        )

    return partial(ask.jobs.changed, id_or_name=form.job.id, edit=edited, by=who.name, revision=form.revision)


async def _form(show: Page, ask: Services, form: _Form, error: Exception | None = None) -> Response:
    fields = Fields({name: [value] for name, value in form.values.items()})
    shown = await _explained(show, ask, show.reader.caller, fields, form.job.id if form.job else "")
    services = [known.name for known in await ask.service_urls.everyone()]
    status = 200 if error is None else 409 if isinstance(error, Conflict) else 422
    return show.html(
        "job_form.html",
        status,
        form=form,
        v=form.values,
        errors=form.errors or _by_field(shown["problems"]),
        services=services,
        zones=zone_names(),
        **shown,
    )


async def _explained(
    show: Page, ask: Services, who: Caller | None, fields: Fields, job_id: str
) -> dict[str, Any]:
    """What the preview shows; a wrong schedule is told at its field."""
    cron = cron_parts(fields.text("cron_expression"))
    try:
        timing = to_timing(schedule_of(fields), show.now)
        found = await run_in_threadpool(explained, timing, job_id, _TIMES, show.now)
    except Invalid as error:
        problems = [(field_of(one.field), one.message) for one in error.problems]
        return {"found": None, "zone": "UTC", "problems": problems, "crowd": (), "cron": cron}
    first = found.moments[0].at if found.moments else None
    crowd = await collisions(ask, who, first, job_id) if first else ()
    return {"found": found, "zone": timing.timezone, "problems": [], "crowd": crowd, "cron": cron}


async def _review(show: Page, sent: Fields, seen: Rehearsal, form: _Form) -> Response:
    assert seen.after is not None
    return show.html(
        "job_review.html",
        form=form,
        job=seen.after,
        words=await run_in_threadpool(explain, seen.after.timing, seen.after.id),
        made=_made(seen) if seen.before else [],
        secretly=[one["field"] for one in changed_fields(seen) if one["before"] == one["after"]],
        hidden=_hidden(sent),
    )


async def _outdated(show: Page, ask: Services, who: Caller, sent: Fields, now: Job) -> Response:
    """Somebody else was faster: what this form would do to the job as it is now."""
    form = _Form(values=_sent_values(sent), job=now, revision=now.revision)
    try:
        seen = await ask.jobs.rehearse(await _edit(ask, who, sent, form), now.id)
    except (Invalid, Conflict) as error:
        return await _form(show, ask, _wrong(form, error), error)
    last = (await ask.audit.revision(now.id, now.revision)).made
    by = last.actor if last else ""
    return show.html("job_outdated.html", 412, job=now, by=by, made=_made(seen), hidden=_hidden(sent))


def _made(seen: Rehearsal) -> list[Change]:
    listed = changed_fields(seen)
    before = {one["field"]: one["before"] for one in listed}
    return changes(before, {one["field"]: one["after"] for one in listed})


def _wrong(form: _Form, error: Invalid | Conflict) -> _Form:
    if isinstance(error, Invalid):
        return replace(form, errors=_by_field((field_of(one.field), one.message) for one in error.problems))
    if form.job is None or form.values.get("name") != form.job.name:
        return replace(form, errors={"name": [str(error)]})
    return replace(form, refused=str(error))


def _by_field(problems: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, message in problems:
        found.setdefault(name, []).append(message)
    return found


def _sent_values(sent: Fields) -> dict[str, str]:
    return {name: sent.text(name) for name in sent}


def _hidden(sent: Fields) -> list[tuple[str, str]]:
    """To be sent once more, whatever the next button is."""
    return [
        (name, value) for name, values in sent.items() if name not in ("do", "revision") for value in values
    ]


def _revision(sent: Fields, job: Job) -> int:
    text = sent.text("revision")
    return int(text) if text.isdecimal() and len(text) < 18 else job.revision


async def _values(ask: Services, job: Job) -> dict[str, str]:
    return values_of(job, await _parents(ask, job))


async def _parents(ask: Services, job: Job) -> dict[str, str]:
    """The names of the jobs that it waits for or follows, by id."""
    ids = frozenset({*job.depends_on, *job.on_success_of})
    found = await ask.jobs.find(JobFilter(ids=ids), limit=max(len(ids), 1))
    return {str(one.id): one.name for one in found.items}
