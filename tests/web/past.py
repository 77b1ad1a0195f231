"""History for the pages of time: runs with ids of their own time, as a scheduler would have made them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from noonday.domain.execution import Execution, ExecutionId, ExecutionState
from noonday.ids import new_id
from noonday.store import executions
from noonday.store.tables import executions as table
from tests.factories import an_execution
from tests.web.site import Site


async def a_run(
    site: Site,
    job: dict[str, Any],
    due: datetime,
    took: timedelta = timedelta(minutes=1),
    late: timedelta = timedelta(),
    state: str = "completed",
) -> Execution:
    started = due + late
    made = an_execution(
        id=ExecutionId(new_id(due)),
        job_id=job["id"],
        scheduled_for=due,
        state=ExecutionState(state),
        completed_at=None if state == "running" else started + took,
    )
    change = table.update().where(table.c.id == made.id).values(started_at=started, attempt=1)

    def write(conn: Any) -> None:
        executions.plan(conn, [made])
        conn.execute(change)

    await site.db.write(write)
    return made
