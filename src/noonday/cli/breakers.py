"""`noonday breakers`: which domains are held back and why, and let them through again."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from noonday.api.breakers import breaker_json
from noonday.cli import output, showing, tables
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json, Utc
from noonday.cli.values import check_page
from noonday.cli.words import one_of
from noonday.domain import search_fields, searching
from noonday.domain.breaker import BreakerState

__all__ = ["app"]

app = App(name="breakers", help_epilogue="")

_COLUMNS = ["domain", "state", "#failures", "#trips", "since", "next try", "last error"]


@app.default
def list_breakers(
    *,
    state: str | None = None,
    query: Annotated[str | None, Parameter(alias="-q")] = None,
    limit: Annotated[int, Parameter(alias="-n")] = 50,
    offset: int = 0,
    utc: Utc = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """List the circuit breakers of all domains that failed, those that hold back calls first.

    Parameters
    ----------
    state:
        closed, open or half_open.
    query:
        A search, such as "domain:*.example.com trips:>3".
    limit:
        How many at most [50].
    offset:
        How many to leave out first.
    """
    check_page(limit, offset)
    words = [each.value for each in BreakerState]
    wanted = None if state is None else BreakerState(one_of("--state", state, words))

    async def work(desk: Desk) -> None:
        terms = searching.parse(query or "", search_fields.BREAKERS, desk.clock.now(), "--query")
        page, parked = await desk.breakers.page(wanted, limit=limit, offset=offset, terms=terms)
        shown = [breaker_json(seen) for seen in page.items]
        if json:
            document = {"breakers": shown, "parked": parked}
            output.data(document | page.bounds)
            return
        if shown:
            tables.table(_COLUMNS, [_row(breaker, utc=utc) for breaker in shown])
        waiting = f"; {parked:,} waiting for one" if parked else ""
        output.say(showing.counted(len(shown), page.total, offset, "breaker") + waiting)

    at_desk(work, database_url)


app.command(list_breakers, name="list", alias="ls")


@app.command
def reset(domain: str, /, *, json: Json = False, database_url: Db = None) -> None:
    """Close a breaker: whoever waits for its domain goes on at once.

    Parameters
    ----------
    domain:
        As the list shows it: example.com, or example.com:8080.
    """

    async def work(desk: Desk) -> None:
        seen = await desk.breakers.reset(domain, desk.by)
        output.say(f"reset the breaker of {seen.row.domain}")
        if json:
            output.data(breaker_json(seen))

    at_desk(work, database_url)


def _row(breaker: showing.Json, *, utc: bool) -> list[str | Text]:
    return [
        breaker["domain"],
        tables.state(breaker["state"]),
        str(breaker["failures"]),
        str(breaker["trips"]),
        showing.time(breaker["opened_at"], utc=utc),
        showing.time(breaker["retry_at"], utc=utc),
        (breaker["last_error"] or "-")[:200],
    ]
