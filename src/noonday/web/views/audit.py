"""`/ui/audit`: who changed what, of everything, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from noonday.api.callers import needs
from noonday.api.services import Ask
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.errors import Invalid
from noonday.store.audit import AuditEntry, AuditFilter
from noonday.store.jobs import JobFilter
from noonday.web import diffs
from noonday.web.pages import Show

router = APIRouter(include_in_schema=False)

_PAGE: Final = 25
_READY: Final = (
    ("at:<1d", "since yesterday"),
    ("action:delete", "what was deleted"),
    ("action:force-run", "runs that people started"),
    ("action:revert", "what was taken back"),
    ("kind:key", "keys"),
)

Q = Annotated[str, Query(max_length=searching.LONGEST)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]


@router.get("/ui/audit", dependencies=[needs(Right.ACCESS)])
async def audit(show: Show, ask: Ask, q: Q = "", offset: Offset = 0) -> Response:
    wrong = None
    terms: tuple[searching.Term, ...] = ()
    try:
        terms = searching.parse(q, search_fields.AUDIT, show.now)
    except Invalid as error:
        wrong = error.problems[0].message
    found = await ask.audit.find(AuditFilter(terms=terms), limit=_PAGE, offset=offset)
    return show.html(
        "audit.html",
        422 if wrong else 200,
        q=q,
        wrong=wrong,
        found=found,
        names=await _names(ask, found.items),
        changes=diffs.changes_of,
        ready=[(f"/ui/audit?{urlencode({'q': text})}", word) for text, word in _READY],
        address=f"/ui/audit?{urlencode({'q': q, 'offset': ''})}",
    )


async def _names(ask: Ask, entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Of jobs that are still there."""
    ids = {entry.subject_id for entry in entries if entry.kind == "job"}
    page = await ask.jobs.find(JobFilter(ids=frozenset(ids)), limit=_PAGE)
    return {job.id: job.name for job in page.items}
