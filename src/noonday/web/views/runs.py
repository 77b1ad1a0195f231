"""`/ui/runs`: the history of all jobs, newest first, found by the same words as everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import cursor_of, mark_of, own_service
from noonday.api.services import Ask
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.errors import Invalid
from noonday.domain.events import SKIP_WORDS, WAIT_WORDS
from noonday.domain.execution import Cause, Execution, ExecutionState
from noonday.store.history import ExecutionFilter
from noonday.store.pages import Mark
from noonday.web import searches
from noonday.web.facets import choices, one_of
from noonday.web.pages import Show

router = APIRouter(include_in_schema=False)

_PAGE: Final = 50
_MENUS: Final = {"cause": "Cause", "due": "Due", "service": "Service", "tag": "Tag"}
CAUSES: Final[Mapping[str, str]] = {
    Cause.SCHEDULE: "its schedule",
    Cause.MANUAL: "by hand",
    Cause.ADMIN: "an administrator",
    Cause.TRIGGER: "a trigger",
    Cause.UPSTREAM: "the job before it",
    Cause.BACKFILL: "a backfill",
}
_DUE: Final = {"<1h": "in the last hour", "<1d": "in the last day", "<7d": "in the last week"}
_READY: Final = (
    ("status:failed ended:<1d", "failed since yesterday"),
    ("status:running", "running now"),
    ("late:>1m due:<1d", "late by more than a minute"),
    ("took:>10m due:<1d", "took more than ten minutes"),
    ("attempt:>1 due:<1d", "needed another try"),
    ("status:skipped due:<1d", "skipped since yesterday"),
)

Q = Annotated[str, Query(max_length=searching.LONGEST)]
After = Annotated[str, Query(max_length=4096)]


@router.get("/ui/runs", dependencies=[needs(Right.READ)])
async def runs(show: Show, ask: Ask, who: Who, q: Q = "", after: After = "") -> Response:
    wrong, terms, mark = _asked(show, q, after)
    wanted = ExecutionFilter(terms=terms, service=own_service(who))
    found, of_jobs = await asyncio.gather(
        ask.executions.glance(wanted, limit=_PAGE, after=mark), ask.listing.of_runs(wanted, after=mark)
    )
    cursor = cursor_of(found.next)
    return show.html(
        "runs.html",
        422 if wrong else 200,
        q=q,
        after=after,
        wrong=wrong,
        found=found,
        facets={
            "status": choices(q, "status", found.states, address_of, order=tuple(ExecutionState)),
            "cause": [
                replace(one, word=CAUSES[one.value])
                for one in choices(q, "cause", found.causes, address_of, order=tuple(Cause))
            ],
            "due": one_of(q, "due", {}, address_of, _DUE),
            "service": choices(q, "service", of_jobs["service"], address_of),
            "tag": choices(q, "tag", of_jobs["tag"], address_of),
        },
        menus=_MENUS,
        words=CAUSES,
        fields=sorted(search_fields.EXECUTIONS.fields),
        why={one.id: why(one) for one in found.items},
        ready=[(address_of(text), word) for text, word in _READY],
        fewer=[(word, address_of(rest)) for word, rest in searches.without_each(q)],
        newest=address_of(q),
        older=address_of(q, cursor) if cursor else None,
    )


def address_of(q: str = "", after: str = "") -> str:
    given = urlencode({name: value for name, value in (("q", q), ("after", after)) if value})
    return f"/ui/runs?{given}" if given else "/ui/runs"


def why(execution: Execution) -> str:
    """What there is to say of it in one line: the error, or why it waits or was skipped."""
    if execution.skip_reason is not None:
        return execution.detail or SKIP_WORDS[execution.skip_reason]
    if execution.state.open and execution.wait_reason is not None:
        return execution.detail or WAIT_WORDS[execution.wait_reason]
    return execution.error or execution.detail or ""


def _asked(show: Show, q: str, after: str) -> tuple[str | None, tuple[searching.Term, ...], Mark | None]:
    """What is wrong with it, if anything, and what is asked for."""
    try:
        return None, searching.parse(q, search_fields.EXECUTIONS, show.now), mark_of(after) if after else None
    except Invalid as error:
        return error.problems[0].message, (), None
