"""`noonday jobs`: look at jobs and control them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from cyclopts import App, Parameter

from noonday.api.schemas import job_json
from noonday.cli import output, showing, tables, values
from noonday.cli.asking import confirmed
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import INTERRUPTED, report
from noonday.cli.flags import Db, Json, Utc, Yes
from noonday.cli.searching import SearchFlags
from noonday.domain.errors import Conflict, NoondayError
from noonday.domain.execution import OPEN
from noonday.domain.job import Job

__all__ = ["app"]

app = App(name="jobs", help_epilogue="")
app.command("noonday.cli.adding.command:add", name="add", help="Add a job, from flags or from a JSON file.")
app.command(
    "noonday.cli.bulk:bulk",
    name="bulk",
    help="Do the same with all jobs that a search finds, or that are named.",
)
app.command("noonday.cli.running:run", name="run", help="Run a job now, beside its schedule.")

Refs = Annotated[str, Parameter(required=True, help="Name or id; several may be given.")]
_ALL = SearchFlags()


@app.command(name="list", alias="ls")
def list_jobs(
    *, search: SearchFlags = _ALL, utc: Utc = False, json: Json = False, database_url: Db = None
) -> None:
    """List jobs with their state, schedule and next run."""
    wanted = search.filter()

    async def work(desk: Desk) -> None:
        now = desk.clock.now()
        found = replace(wanted, terms=search.terms(now))
        page = await desk.jobs.find(found, limit=search.limit, offset=search.offset)
        jobs = [job_json(job, now) for job in page.items]
        if json:
            output.data({"jobs": jobs, **page.bounds})
            return
        if jobs:
            tables.table(showing.LIST_COLUMNS, [showing.list_row(job, utc=utc) for job in jobs])
        output.say(showing.counted(len(jobs), page.total, search.offset))

    at_desk(work, database_url)


@app.command
def show(job: str, /, *, utc: Utc = False, json: Json = False, database_url: Db = None) -> None:
    """Show one job: what it runs, when it runs next, and how its last runs went.

    Parameters
    ----------
    job:
        Name or id.
    """

    async def work(desk: Desk) -> None:
        found = await desk.job(job)
        shown = job_json(found, desk.clock.now())
        if json:
            output.data(shown)
            return
        runs = await desk.executions.page(found.id, limit=5)
        showing.job(shown, utc=utc)
        if runs.items:
            tables.title("Last runs")
            tables.table(showing.RUN_COLUMNS, [showing.run_row(run, utc=utc) for run in runs.items])

    at_desk(work, database_url)


@app.command
def pause(*job: Refs, until: str | None = None, json: Json = False, database_url: Db = None) -> int:
    """Hold the schedule of jobs. What falls due meanwhile is recorded as skipped.

    Parameters
    ----------
    until:
        When the pause ends by itself: a span from now such as 2h, or a time; in UTC unless it has an offset.
    """

    async def act(desk: Desk, ref: str) -> Job:
        end = None if until is None else values.until("--until", until, desk.clock.now())
        return await desk.jobs.pause(ref, desk.by, until=end)

    return _each(job, act, "paused", json, database_url)


@app.command
def skip_next(*job: Refs, json: Json = False, database_url: Db = None) -> int:
    """Let the next run of jobs not happen. It is recorded as skipped."""
    return _each(
        job,
        lambda desk, ref: desk.jobs.skip_next(ref, desk.by),
        "skipped the next run of",
        json,
        database_url,
    )


@app.command
def resume(
    *job: Refs,
    catch_up: bool = False,
    json: Json = False,
    database_url: Db = None,
) -> int:
    """Let paused jobs go on, with their next future time.

    Parameters
    ----------
    catch_up:
        Treat what fell into the pause as missed, by the job's own misfire rules.
    """

    async def act(desk: Desk, ref: str) -> Job:
        return await desk.jobs.resume(ref, desk.by, catch_up=catch_up)

    return _each(job, act, "resumed", json, database_url)


@app.command
def cancel(
    *job: Refs,
    runs: bool = False,
    yes: Yes = False,
    json: Json = False,
    database_url: Db = None,
) -> int:
    """End jobs for good, with what they run now. Their history stays.

    Parameters
    ----------
    runs:
        Only cancel what runs or waits now; the jobs go on by their schedule.
    """
    if not runs and not confirmed(f"Cancel {', '.join(job)} for good?", yes=yes):
        return INTERRUPTED
    if runs:
        return _each(job, _cancel_runs, "cancelled runs of", json, database_url)
    return _each(job, lambda desk, ref: desk.jobs.cancel(ref, desk.by), "cancelled", json, database_url)


async def _cancel_runs(desk: Desk, ref: str) -> Job:
    job = await desk.job(ref)
    for state in sorted(OPEN):
        for run in (await desk.executions.page(job.id, limit=1000, status=state)).items:
            with suppress(Conflict):  # it ended meanwhile
                await desk.executions.cancel(run.id, desk.by)
    return await desk.job(job.id)


@app.command(name="rm", alias="remove")
def remove(*job: Refs, yes: Yes = False, json: Json = False, database_url: Db = None) -> int:
    """Remove jobs and their history."""
    if not confirmed(f"Remove {', '.join(job)} and the history?", yes=yes):
        return INTERRUPTED
    return _each(job, lambda desk, ref: desk.jobs.remove(ref, desk.by), "removed", json, database_url)


def _each(
    refs: tuple[str, ...],
    act: Callable[[Desk, str], Awaitable[Job]],
    done: str,
    json: bool,
    database_url: str | None,
) -> int:
    """Do the same with each job; one that fails is reported and does not stop the others."""

    async def work(desk: Desk) -> int:
        code, changed = 0, list[dict[str, Any]]()
        for ref in refs:
            try:
                job = await act(desk, ref)
            except NoondayError as error:
                code = report(await desk.hinted(error, ref))
                continue
            changed.append(job_json(job, desk.clock.now()))
            output.say(f"{done} {job.name}")
        if json:
            output.data({"jobs": changed})
        return code

    return at_desk(work, database_url)
