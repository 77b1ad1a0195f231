"""Planned executions go in: one row for each slot, numbered per job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, Road
from noonday.domain.job import Job, Lane
from noonday.domain.plans import Fire, Plan
from noonday.ids import new_ids
from noonday.ports import Parcel, Pledge
from noonday.store import bulk_plans, dialects
from noonday.store.execution_rows import planned_values
from noonday.store.job_cursors import Due
from noonday.store.notices import PLEDGED, WORK, skipped, tell
from noonday.store.records import lapsed, road_of
from noonday.store.shortcuts import NOTHING
from noonday.store.tables import SLOT, executions, jobs


def plan(conn: Connection, planned: Sequence[Execution], pledged: Collection[ExecutionId] = ()) -> int:
    """Insert the executions whose slot is still free; returns how many.

    Those that are `pledged` will be put on the streams at their moment by whoever plans them.

    Runs are numbered per job in the order given; lapses keep the number 0. Whoever plans for a job holds its
    row, so numbers have gaps only where a slot was already taken.
    """
    if not planned:
        return 0
    dialect = dialects.of(conn)
    rows = _numbered(conn, [_values(execution, pledged) for execution in planned])
    made = dialect.insert(conn, executions, _without_empty(rows), SLOT).count()
    if made:
        tell(conn, WORK)
        _tell_of_skips(conn, planned)
    return made


def _tell_of_skips(conn: Connection, planned: Iterable[Execution]) -> None:
    for execution in planned:
        if execution.skip_reason is not None:
            skipped(conn, execution.job_id, execution.skip_reason, execution.skipped_count)


def _values(execution: Execution, pledged: Collection[ExecutionId]) -> dict[str, Any]:
    enqueued_at = execution.created_at if execution.id in pledged else None
    return planned_values(execution) | {"enqueued_at": enqueued_at}


def _numbered(conn: Connection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each run its number. Rows of a job that is gone are left out."""
    planned = Counter(row["job_id"] for row in rows)
    runs = Counter(row["job_id"] for row in rows if row["state"] != ExecutionState.SKIPPED)
    counts = [{"id": i, "execution_count": runs[i], "row_count": n} for i, n in planned.items()]
    last = dialects.of(conn).increase(conn, jobs, counts, "execution_count")
    following = {job_id: count - runs[job_id] for job_id, count in last.items()}
    kept = [row for row in rows if row["job_id"] in following]
    for row in kept:
        if row["state"] == ExecutionState.SKIPPED:
            row["number"] = 0
        else:
            row["number"] = following[row["job_id"]] = following[row["job_id"]] + 1
    return kept


def _without_empty(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out columns that no row fills: fewer arrays to send."""
    used = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in used} for row in rows]


class Planned(NamedTuple):
    rows: int  # that went in
    pledges: list[Pledge]


Plans = Sequence[tuple[Due, Plan]]


def plan_due(
    conn: Connection, plans: Plans, now: datetime, fed: Collection[Lane] = (), crowd: Collection[str] = ()
) -> Planned:
    """As `plan`, for the fires and lapses of jobs that `due` has locked; and their cursors move on.

    Fires that take the streams are pledged, in the lanes that are `fed`, but not those of the jobs of a
    `crowd`. A pledge for a slot that was taken is a message about nothing.
    """
    if not plans:
        return Planned(0, [])
    runs = _runs(plans, now)
    pledges = _pledges(runs, fed, crowd) if fed else []
    columns = _columns(runs, {one.parcel.execution_id for one in pledges}, now)
    inserted = bulk_plans.insert_runs(conn, columns, _RUN | {"created_at": now}) if runs.ids else NOTHING
    lapses = [lapsed(due.job, lapse, now) for due, made in plans for lapse in made.lapses]
    _move(conn, plans)
    count = inserted.count()
    if lapses:
        rows = _without_empty([planned_values(lapse) for lapse in lapses])
        count += dialects.of(conn).insert(conn, executions, rows, SLOT).count()
    if count:
        tell(conn, PLEDGED if len(pledges) == len(runs.ids) and not lapses else WORK)
        _tell_of_skips(conn, lapses)
    return Planned(count, pledges)


_RUN: Final = {"cause": Cause.SCHEDULE.value, "state": ExecutionState.QUEUED.value}


class _Runs(NamedTuple):
    """Side by side."""

    ids: list[str]
    jobs: list[Job]
    numbers: list[int]
    fires: list[Fire]


def _runs(plans: Plans, now: datetime) -> _Runs:
    fires = [fire for _, made in plans for fire in made.fires]
    return _Runs(
        ids=new_ids(now, len(fires)),
        jobs=[due.job for due, made in plans for _ in made.fires],
        numbers=[due.runs + n for due, made in plans for n in range(1, len(made.fires) + 1)],
        fires=fires,
    )


def _pledges(runs: _Runs, fed: Collection[Lane], crowd: Collection[str]) -> list[Pledge]:
    return [
        Pledge(fire.available_at, Parcel(job.lane, ExecutionId(i)))
        for i, job, fire in zip(runs.ids, runs.jobs, runs.fires, strict=True)
        if job.lane in fed and road_of(job) is Road.STREAMS and job.id not in crowd
    ]


def _columns(runs: _Runs, pledged: Collection[str], now: datetime) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {
        "id": runs.ids,
        "job_id": [job.id for job in runs.jobs],
        "scheduled_for": [fire.scheduled_for for fire in runs.fires],
        "available_at": [fire.available_at for fire in runs.fires],
        "covers_from": [fire.covers_from for fire in runs.fires],
        "number": runs.numbers,
        "lane": [job.lane.real for job in runs.jobs],
        "road": [road_of(job).real for job in runs.jobs],
    }
    if pledged:
        made["enqueued_at"] = [now if i in pledged else None for i in runs.ids]
    return made


def _move(conn: Connection, plans: Plans) -> None:
    fires = [len(made.fires) for _, made in plans]
    columns: dict[str, list[Any]] = {
        "next_run_at": [made.next_run_at for _, made in plans],
        "fire_count": fires,
        "execution_count": fires,
        "row_count": [len(made.fires) + len(made.lapses) for _, made in plans],
        "id": [due.job.id for due, _ in plans],
    }
    bulk_plans.move_cursors(conn, columns)
