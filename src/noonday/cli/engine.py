"""`noonday engine`: version 1 and version 2 side by side, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from cyclopts import App, Parameter

from noonday.api.operating import comparison_json, move_json
from noonday.cli import output, tables
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import Hint
from noonday.cli.flags import Db, Json, Utc
from noonday.control.engines import Choice, Comparison
from noonday.domain.errors import Conflict, Invalid, NotFound, Problem, invalid
from noonday.domain.execution import Road
from noonday.store.engine_versions import Figures

__all__ = ["app"]

app = App(name="engine", help_epilogue="")

_SHOWN = 20  # names of moved jobs


@app.command
def status(*, hours: float = 24.0, utc: Utc = False, json: Json = False, database_url: Db = None) -> None:
    """Compare both versions: jobs, runs, failures and lateness, and what follows from it.

    Parameters
    ----------
    hours:
        How far back executions are counted [24].
    """
    if not 0 < hours <= 24 * 366:
        raise invalid("--hours", hours, "must lie between 0 and a year")

    async def work(desk: Desk) -> None:
        found = await desk.engines.compare(hours)
        if json:
            output.data(comparison_json(found))
            return
        one, two = found.engines[Road.DATABASE], found.engines[Road.STREAMS]
        rows = [[name, cell(one), cell(two)] for name, cell in _LINES]
        tables.table(["", "#version 1 (database)", "#version 2 (streams)"], rows)
        output.say(f"executions of the last {hours:g} hours", *_end(found, utc=utc))

    at_desk(work, database_url)


@app.command
def move(
    *job: Annotated[str, Parameter(help="Name or id; several may be given.")],
    to: int,
    all: bool = False,
    tag: str | None = None,
    dry_run: bool = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Move jobs to the other engine. What runs ends where it began, what waits goes along.

    Parameters
    ----------
    to:
        1 for the database engine, 2 for the streams engine.
    all:
        All jobs.
    tag:
        The jobs with this tag.
    dry_run:
        Only say which jobs would move.
    """
    if to not in (1, 2):
        raise invalid("--to", to, "must be 1 or 2")
    if sum((bool(job), all, tag is not None)) != 1:
        raise Invalid(Problem("JOB", "name jobs, or give --tag, or --all: one of the three"))
    choice = Choice(all=all, jobs=job, tag=tag)

    async def work(desk: Desk) -> None:
        try:
            moved = await desk.engines.move(choice, Road(to), desk.by, dry_run=dry_run)
        except NotFound as exc:
            raise Hint(exc, "noonday jobs list") from exc
        if json:
            output.data(move_json(moved))
        names = ", ".join(moved.names[:_SHOWN]) + (", …" if moved.count > _SHOWN else "")
        what = "1 job" if moved.count == 1 else f"{moved.count:,} jobs"
        verb = "would move" if dry_run else "moved"
        output.say(f"{what} {verb} to version {to}" + (f": {names}" if names else ""))

    at_desk(work, database_url)


@app.command
def finish(*, undo: bool = False, json: Json = False, database_url: Db = None) -> None:
    """End the migration: from then on whatever comes as version 1 becomes version 2.

    Refused, with exit code 4, while jobs of version 1 remain.

    Parameters
    ----------
    undo:
        Let there be version 1 again.
    """

    async def work(desk: Desk) -> None:
        if undo:
            words = "version 1 may be used again" if await desk.engines.reopen(desk.by) else "nothing to undo"
        else:
            try:
                await desk.engines.finish(desk.by)
            except Conflict as exc:
                raise Hint(exc, "noonday engine move --all --to 2") from exc
            words = "the migration is finished: everything is version 2"
        output.say(words)
        if json:
            output.data(comparison_json(await desk.engines.compare()))

    at_desk(work, database_url)


def _end(found: Comparison, *, utc: bool) -> list[str]:
    words = [found.verdict]
    if found.finished_at is not None:
        words.append(f"finished at {output.time(found.finished_at, utc=utc)}")
    return words


def _late(name: str) -> Callable[[Figures], str]:
    def cell(figures: Figures) -> str:
        span: timedelta | None = getattr(figures.lateness, name, None)
        return output.span(span)

    return cell


def _count(name: str) -> Callable[[Figures], str]:
    return lambda figures: f"{getattr(figures, name):,}"


def _rate(figures: Figures) -> str:
    return "-" if figures.failure_rate is None else f"{figures.failure_rate:.2%}"


_COUNTS = ("jobs", "armed", "running", "waiting", "completed", "failed", "skipped", "cancelled")
_LINES: list[tuple[str, Callable[[Figures], str]]] = [
    *((name, _count(name)) for name in _COUNTS),
    ("failure rate", _rate),
    ("took on average", lambda figures: output.span(figures.took)),
    *((f"late {name}", _late(name)) for name in ("p50", "p95", "p99", "max")),
]
