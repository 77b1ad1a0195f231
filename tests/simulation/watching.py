"""Invariants that must hold at the moment an attempt begins."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, select

from noonday.domain.execution import Cause
from noonday.domain.job import Overlap
from noonday.store.columns import Id
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.tables import executions
from tests.simulation.bodies import Body
from tests.simulation.universe import START
from tests.simulation.world import World, called

_JUST = 0.05  # seconds after a thaw in which a process may still act on what it knew before
_PAUSED_FOR = 1.5  # seconds that a claim may wait for its slot


def watch(world: World, body: Body) -> None:
    _not_early(world, body)
    _on_a_living_lease(world, body)
    _once(world, body)
    _alone(world, body)
    _no_overlap(world, body)
    _not_while_resting(world, body)


def _not_early(world: World, body: Body) -> None:
    execution = body.claim.execution
    due = (execution.scheduled_for - START).total_seconds()
    if execution.cause is Cause.SCHEDULE and world.time < due - 1e-6:
        world.fail(f"{called(body)} begins before it is due")


def _on_a_living_lease(world: World, body: Body) -> None:
    """The row was written before, and it says that this attempt runs here."""
    with world.store.conn.begin():
        row = _row(world.store.conn, own=body.execution_id).first()
    if row is None:
        world.fail(f"{called(body)} runs, and no row knows of it")
        return
    ours = row.state == "running" and row.lease_token == body.claim.execution.lease_token
    if not (ours and row.lease_expires_at > world.universe.now) and not _just_thawed(world, body):
        world.fail(f"{called(body)} begins without a living lease: {row.state}, until {row.lease_expires_at}")


@prepared
def _row(_: Answers) -> Select[Any]:
    columns = (executions.c.state, executions.c.lease_token, executions.c.lease_expires_at)
    return select(*columns).where(executions.c.id == bindparam("own", type_=Id))


def _once(world: World, body: Body) -> None:
    same = (body.execution_id, body.attempt)
    if any((one.execution_id, one.attempt) == same for one in world.bodies):
        world.fail(f"{called(body)} runs twice under one number")


def _alone(world: World, body: Body) -> None:
    others = [one for one in _going(world) if one.execution_id == body.execution_id]
    if others and not _just_thawed(world, body):
        world.fail(f"{called(body)} begins while attempt {others[0].attempt} still runs")


def _no_overlap(world: World, body: Body) -> None:
    policy = body.claim.job.overlapping
    if policy.overlap is Overlap.ALLOW or _just_thawed(world, body):
        return
    others = {
        one.execution_id
        for one in _going(world)
        if one.job_id == body.job_id and one.execution_id != body.execution_id
    }
    if len(others) >= policy.max_instances:
        world.fail(f"{called(body)} begins while {len(others)} of {policy.max_instances} run")


def _not_while_resting(world: World, body: Body) -> None:
    stretch = world.stretches[body.job_id][-1]
    scheduled = body.claim.execution.cause is Cause.SCHEDULE
    rests = stretch.resting and (stretch.until is None or world.universe.now < stretch.until)
    if scheduled and rests and world.time - stretch.since > _PAUSED_FOR:
        world.fail(f"{called(body)} begins although the job is paused since {stretch.since:.3f}")


def _going(world: World) -> list[Body]:
    """Without those of a process that has just gone on and had no time to see that their leases are over."""
    return [one for one in world.bodies if one.in_flight and not _just_thawed(world, one)]


def _just_thawed(world: World, body: Body) -> bool:
    node = world.nodes.get(body.process.name)
    return node is not None and 0 <= world.time - node.thawed_at < _JUST
