"""Planned executions go in: one row for each slot, numbered per job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection

from noonday.domain.execution import Execution, ExecutionId, ExecutionState
from noonday.store import dialects
from noonday.store.execution_rows import planned_values
from noonday.store.notices import WORK, skipped, tell
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
    made = dialect.insert(conn, executions, _without_empty(rows), SLOT) if rows else 0
    if made:
        tell(conn, WORK)
        for execution in planned:
            if execution.skip_reason is not None:
                skipped(conn, execution.job_id, execution.skip_reason, execution.skipped_count)
    return made


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
