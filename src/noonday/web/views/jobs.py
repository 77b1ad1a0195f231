"""`/ui/jobs`: all jobs, found by the same words as everywhere, with their state, schedule and last runs."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.errors import Invalid
from noonday.domain.explain import explain
from noonday.store.jobs import JobFilter
from noonday.web.pages import Show

router = APIRouter(include_in_schema=False)

_PAGE: Final = 50

Q = Annotated[str, Query(max_length=searching.LONGEST)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]


@router.get("/ui/jobs", dependencies=[needs(Right.READ)])
async def jobs(show: Show, ask: Ask, who: Who, q: Q = "", offset: Offset = 0) -> Response:
    wrong = None
    terms: tuple[searching.Term, ...] = ()
    try:
        terms = searching.parse(q, search_fields.JOBS, show.now)
    except Invalid as error:
        wrong = error.problems[0].message
    wanted = JobFilter(terms=terms, service=own_service(who))
    page = await ask.jobs.find(wanted, limit=_PAGE, offset=offset, order="name")
    schedules = {job.id: explain(job.timing, job.id) for job in page.items}
    return show.html("jobs.html", 422 if wrong else 200, q=q, wrong=wrong, found=page, schedules=schedules)
