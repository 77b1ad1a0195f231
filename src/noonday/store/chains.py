"""What the end of one job means for others: dependants are judged again, followers fire."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job
from noonday.ids import new_id
from noonday.store.dialects import Answers
from noonday.store.planning import plan
from noonday.store.prepared import quick
from noonday.store.records import road_of
from noonday.store.releasing import release, revive
from noonday.store.settled_jobs import Ended
from noonday.store.tables import DEPENDS_ON, ON_SUCCESS_OF, job_dependencies

Edges = Mapping[str, Sequence[tuple[str, str]]]  # from a job to (child, kind)


def below(conn: Connection, parents: Collection[str]) -> Edges:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    if parents:
        for parent, child, kind in _below(conn, parents=parents):
            found[parent].append((child, kind))
    return found


def followers(edges: Edges) -> set[str]:
    """Who fires after a success."""
    return {child for under in edges.values() for child, kind in under if kind == ON_SUCCESS_OF}


def follow(
    conn: Connection, edges: Edges, final: Sequence[Ended], locked: Mapping[str, Job], now: datetime
) -> None:
    """Whoever waits for one of these is judged again; after a success the followers fire."""
    if not edges:
        return
    over = {one.execution.job_id for one in final}
    fires: list[Execution] = []
    for execution, state, _ in final:
        if state is not ExecutionState.COMPLETED:
            continue
        under = edges.get(execution.job_id, ())
        children = [child for child, kind in under if kind == DEPENDS_ON]
        revive(conn, children, execution.scheduled_for, now)
        following = [locked[child] for child, kind in under if kind == ON_SUCCESS_OF and child in locked]
        fires += [_fire(job, execution, now) for job in following]
    release(conn, {child for i in over for child, kind in edges.get(i, ()) if kind == DEPENDS_ON}, now)
    plan(conn, fires)


@quick
def _below(dialect: Answers) -> Select[Any]:
    columns = (job_dependencies.c.parent_id, job_dependencies.c.job_id, job_dependencies.c.kind)
    return select(*columns).where(dialect.listed(job_dependencies.c.parent_id, "parents"))


def _fire(child: Job, parent: Execution, now: datetime) -> Execution:
    """A follower that may not run now is recorded as skipped: nothing disappears."""
    made = Execution(
        id=ExecutionId(new_id(now)),
        job_id=child.id,
        cause=Cause.UPSTREAM,
        scheduled_for=parent.scheduled_for,
        available_at=now,
        state=ExecutionState.QUEUED,
        lane=child.lane,
        road=road_of(child),
        trace_id=parent.trace_id,
        created_at=now,
    )
    if child.armed:
        return made
    reason = SkipReason.DISABLED if not child.enabled else SkipReason.PAUSED
    if not child.paused and child.enabled:
        reason = SkipReason.CANCELLED
    return replace(
        made,
        state=ExecutionState.SKIPPED,
        available_at=None,
        skip_reason=reason,
        skipped_count=1,
        detail="the job it follows succeeded",
        completed_at=now,
    )
