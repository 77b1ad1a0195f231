"""Executions made of fields without their constructor are what it would have made."""

from __future__ import annotations

from dataclasses import fields, replace

from noonday.domain.execution import Cause, Execution, ExecutionState, Road
from noonday.domain.job import Lane
from noonday.store.execution_rows import Waiting, first_attempts, started_fields, waiting_fields
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import MINUTE, SECOND

NAMES = {field.name for field in fields(Execution)}


def waiting(execution: Execution) -> Waiting:
    found = {name: getattr(execution, name) for name in Waiting._fields}
    plain = {"cause": execution.cause.value, "state": execution.state.value, "lane": execution.lane.value}
    return Waiting(**{**found, **plain, "road": execution.road.value})


def test_one_that_waits() -> None:
    execution = an_execution(
        job=a_job(), cause=Cause.MANUAL, lane=Lane.HIGH, road=Road.STREAMS, config={"a": 1}, number=7
    )
    values = waiting_fields(waiting(execution))
    assert values.keys() <= NAMES
    assert Execution.of(values) == execution


def test_one_that_is_started() -> None:
    job = a_job(timeout=MINUTE)
    execution = an_execution(job=job, covers_from=NOON - MINUTE, triggered_by="somebody", trace_id="a" * 32)
    alike = first_attempts(NOON, NOON + MINUTE, "me")
    values = started_fields(waiting(execution), job, alike, "token", NOON + SECOND)
    assert values.keys() <= NAMES
    assert Execution.of(values) == replace(
        execution,
        state=ExecutionState.RUNNING,
        attempt=1,
        lease_token="token",
        lease_expires_at=NOON + MINUTE,
        deadline_at=NOON + SECOND + MINUTE,
        instance_id="me",
        claimed_at=NOON,
        started_at=NOON + SECOND,
    )


def test_what_is_left_out_has_its_default() -> None:
    execution = an_execution(job=a_job(), number=0)
    required = {name: getattr(execution, name) for name in NAMES if not hasattr(Execution, name)}
    made = Execution.of(required)
    assert made == execution
    assert replace(made, attempt=2) == replace(execution, attempt=2)
