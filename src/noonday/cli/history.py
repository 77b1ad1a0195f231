"""`noonday history`: what ran, what was skipped, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from noonday.api.schemas import execution_json
from noonday.cli import output, showing, tables
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json, Utc
from noonday.cli.values import check_page
from noonday.cli.words import one_of
from noonday.domain import search_fields, searching
from noonday.domain.execution import Execution, ExecutionState
from noonday.store.history import ExecutionFilter

__all__ = ["history"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Which executions."""

    status: str | None = None
    "pending, queued, running, completed, failed, cancelled or skipped."
    query: Annotated[str | None, Parameter(alias="-q")] = None
    'A search, such as "status:failed job:digest* due:<2d took:>30s".'
    limit: Annotated[int, Parameter(alias="-n")] = 20
    "How many at most [20]."
    offset: int = 0
    "How many to leave out first."

    def state(self) -> ExecutionState | None:
        check_page(self.limit, self.offset)
        if self.status is None:
            return None
        return ExecutionState(one_of("--status", self.status, [state.value for state in ExecutionState]))


_NEWEST = Pick()


def history(
    job: str | None = None,
    /,
    *,
    pick: Pick = _NEWEST,
    utc: Utc = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """List executions, newest first.

    Parameters
    ----------
    job:
        Name or id of a job; without it, those of all jobs.
    """
    state = pick.state()

    async def work(desk: Desk) -> None:
        found = await desk.job(job) if job else None
        terms = searching.parse(pick.query or "", search_fields.EXECUTIONS, desk.clock.now(), "--query")
        wanted = ExecutionFilter(job_id=found.id if found else None, status=state, terms=terms)
        page = await desk.executions.find(wanted, limit=pick.limit, offset=pick.offset)
        if json:
            runs = [execution_json(run) for run in page.items]
            output.data({"executions": runs, **page.bounds})
            return
        rows = [showing.run_row(run, utc=utc) for run in page.items]
        columns = list(showing.RUN_COLUMNS)
        if found is None:
            names = await _names(desk, page.items)
            rows = [[names[run.job_id], *row] for run, row in zip(page.items, rows, strict=True)]
            columns.insert(0, "job")
        if rows:
            tables.table(columns, rows)
        output.say(showing.counted(len(rows), page.total, pick.offset, "execution"))

    at_desk(work, database_url)


async def _names(desk: Desk, runs: tuple[Execution, ...]) -> dict[str, str]:
    return {
        job_id: (await desk.jobs.get(job_id)).name for job_id in dict.fromkeys(run.job_id for run in runs)
    }
