"""`/ui/jobs`: all jobs, found by the same words as everywhere, with their state, schedule and last runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.bulk import RIGHTS, Action
from noonday.control.listing import Counted, success_rate
from noonday.domain import search_fields, searching
from noonday.domain.access import Caller, Right
from noonday.domain.errors import Invalid
from noonday.domain.explain import explain
from noonday.domain.job import Lane
from noonday.store.jobs import JobFilter
from noonday.web import searches
from noonday.web.facets import Choice, choices, one_of
from noonday.web.pages import Page, Show

router = APIRouter(include_in_schema=False)

_PAGE: Final = 50
_MENUS: Final = {"next": "Due", "type": "Type", "service": "Service", "tag": "Tag", "priority": "Priority"}
_SOON: Final = {"<1h": "within the hour", "<1d": "within a day", "<7d": "within a week"}
_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "status": tuple(search_fields.JOBS.fields["status"].choices),
    "type": tuple(search_fields.JOBS.fields["type"].choices),
    "priority": tuple(str(lane.value) for lane in sorted(Lane)),
}
_WORDS: Final = {"priority": {str(lane.value): lane.name.lower() for lane in Lane}}
_SORTS: Final = {"name": "Job", "status": "State", "next_run_at": "Next", "last_run_at": "Last"}
_READY: Final = (
    ("next:<1h", "due within the hour"),
    ("last_status:failed", "failed last time"),
    ("paused:yes", "paused"),
    ("enabled:no", "switched off"),
    ("last:none", "never run"),
    ("updated:<1d", "changed since yesterday"),
)

Q = Annotated[str, Query(max_length=searching.LONGEST)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
Sort = Annotated[str, Query(pattern=rf"^-?({'|'.join(_SORTS)})$")]


@router.get("/ui/jobs", dependencies=[needs(Right.READ)])
async def jobs(
    show: Show, ask: Ask, who: Who, q: Q = "", sort: Sort = "name", offset: Offset = 0
) -> Response:
    wrong = None
    terms: tuple[searching.Term, ...] = ()
    try:
        terms = searching.parse(q, search_fields.JOBS, show.now)
    except Invalid as error:
        wrong = error.problems[0].message
    wanted = JobFilter(terms=terms, service=own_service(who))
    soon = {span: searching.parse(f"next:{span}", search_fields.JOBS, show.now)[0] for span in _SOON}
    found = await ask.listing.look(wanted, limit=_PAGE, offset=offset, order=sort, soon=soon)
    return show.html(
        "jobs.html",
        422 if wrong else 200,
        q=q,
        sort=sort,
        wrong=wrong,
        found=found.page,
        all=found.all,
        strips=found.strips,
        rates={job_id: success_rate(bars) for job_id, bars in found.strips.items()},
        schedules={job.id: explain(job.timing, job.id) for job in found.page.items},
        facets={} if wrong else _facets(found.counted, q, sort),
        counted=found.counted,
        menus=_MENUS,
        fields=sorted(search_fields.JOBS.fields),
        ready=[(address_of(text), word) for text, word in _READY],
        columns=_columns(q, sort),
        fewer=_fewer(q, sort),
        address=_further(q, sort),
        actions=_actions(who),
        server=_base(show),
        tagged=lambda tag: address_of(searches.toggled("", "tag", tag)),
    )


def address_of(q: str = "", sort: str = "name") -> str:
    parts = {"q": q, "sort": "" if sort == "name" else sort}
    given = urlencode({name: value for name, value in parts.items() if value})
    return f"/ui/jobs?{given}" if given else "/ui/jobs"


def _further(q: str, sort: str) -> str:
    """Of a page of the list, up to the number of its first job."""
    start = address_of(q, sort)
    return f"{start}{'&' if '?' in start else '?'}offset="


def _facets(found: Counted, q: str, sort: str) -> dict[str, list[Choice]]:
    lead = partial(address_of, sort=sort)
    made = {}
    for field, counts in found.facets.items():
        order, least = _ORDERS.get(field, ()), field in found.least
        made[field] = choices(q, field, counts, lead, order=order, words=_WORDS.get(field), least=least)
    dues = {span: count for span, count in found.facets["next"].items() if count or "next" not in found.least}
    return made | {"next": one_of(q, "next", dues, lead, _SOON)}


def _columns(q: str, sort: str) -> list[tuple[str, str, str, str]]:
    """Each column's name, word and address, and how it is sorted now; a second click turns it round."""
    made = []
    for name, word in _SORTS.items():
        now = {name: "ascending", f"-{name}": "descending"}.get(sort, "none")
        made.append((name, word, address_of(q, f"-{name}" if sort == name else name), now))
    return made


def _fewer(q: str, sort: str) -> list[tuple[str, str]]:
    """The search with one of its words left out, for each of them."""
    return [(word, address_of(rest, sort)) for word, rest in searches.without_each(q)]


def _actions(who: Caller) -> list[str]:
    return [action.value for action in Action if who.may(RIGHTS[action])]


def _base(show: Page) -> str:
    """Where programs call this instance, for the examples."""
    return str(show.request.base_url).rstrip("/")
