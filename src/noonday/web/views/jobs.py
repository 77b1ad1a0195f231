"""`/ui/jobs`: all jobs, found by the same words as everywhere, with their state, schedule and last runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.bulk import RIGHTS, Action
from noonday.control.listing import Facets, success_rate
from noonday.domain import search_fields, searching
from noonday.domain.access import Caller, Right
from noonday.domain.errors import Invalid
from noonday.domain.explain import explain
from noonday.domain.job import Lane
from noonday.store.jobs import JobFilter
from noonday.web import searches
from noonday.web.pages import Page, Show

router = APIRouter(include_in_schema=False)

_PAGE: Final = 50
_MOST_VALUES: Final = 15  # of a facet, the most frequent ones
_FACETS: Final = {"type": "Type", "service": "Service", "tag": "Tag", "priority": "Priority"}
_STATES: Final = tuple(search_fields.JOBS.fields["status"].choices)
_SORTS: Final = {"name": "Job", "status": "State", "next_run_at": "Next", "last_run_at": "Last"}
READY: Final = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A value of a facet: its word, how many jobs have it, and where a click leads."""

    value: str
    word: str
    jobs: int
    chosen: bool
    address: str


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
    found = await ask.listing.look(wanted, limit=_PAGE, offset=offset, order=sort)
    facets = {} if wrong else dict(_facets(found.facets, q, sort))
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
        facets=facets,
        names=_FACETS,
        fields=sorted(search_fields.JOBS.fields),
        ready=[(address_of(text), word) for text, word in READY],
        columns=_columns(q, sort),
        fewer=_fewer(q, sort),
        pages=_pages(q, sort, offset, found.page.total),
        actions=_actions(who),
        base=_base(show),
        tagged=lambda tag: address_of(searches.toggled("", "tag", tag)),
    )


def address_of(q: str = "", sort: str = "name", offset: int = 0) -> str:
    parts = {"q": q, "sort": "" if sort == "name" else sort, "offset": offset or ""}
    given = urlencode({name: value for name, value in parts.items() if value})
    return f"/ui/jobs?{given}" if given else "/ui/jobs"


def _facets(found: Facets, q: str, sort: str) -> Iterator[tuple[str, list[_Choice]]]:
    for field, counts in found.items():
        chosen = searches.chosen(q, field)
        words = {str(lane.value): lane.name.lower() for lane in Lane} if field == "priority" else {}
        picked = {value: counts.get(value, 0) for value in _picked(chosen, words)}
        first = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_MOST_VALUES]
        values = {**dict(first), **picked}
        yield (
            field,
            [_choice(q, sort, field, value, values[value], words) for value in _in_order(field, values)],
        )


def _picked(chosen: set[str], words: Mapping[str, str]) -> set[str]:
    """Values as the counts know them: a priority may have been written as a word."""
    numbers = {word: value for value, word in words.items()}
    return {numbers.get(value, value) for value in chosen}


def _in_order(field: str, values: Mapping[str, int]) -> list[str]:
    if field == "status":
        return [state for state in _STATES if state in values]
    if field == "priority":
        return sorted(values)
    return list(values)


def _choice(q: str, sort: str, field: str, value: str, jobs: int, words: Mapping[str, str]) -> _Choice:
    word = words.get(value, value)
    written = searches.chosen(q, field)
    term = value if value in written else word
    return _Choice(
        value=value,
        word=word,
        jobs=jobs,
        chosen=term in written,
        address=address_of(searches.toggled(q, field, term), sort),
    )


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


def _pages(q: str, sort: str, offset: int, total: int) -> dict[str, str]:
    found = {}
    if offset:
        found["prev"] = address_of(q, sort, max(offset - _PAGE, 0))
    if offset + _PAGE < total:
        found["next"] = address_of(q, sort, offset + _PAGE)
    return found


def _actions(who: Caller) -> list[str]:
    return [action.value for action in Action if who.may(RIGHTS[action])]


def _base(show: Page) -> str:
    """Where programs call this instance, for the examples."""
    return str(show.request.base_url).rstrip("/")
