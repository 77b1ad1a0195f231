"""Many declarations at once mean what each of them means alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from noonday.api.dialects.registry import RegisterAllBody, to_declaration, to_declarations
from noonday.api.schemas import JobDefaults
from noonday.control.registry import Declaration
from noonday.control.secrets import MASK
from noonday.control.snapshots import snapshot, snapshots
from noonday.domain.errors import Invalid
from noonday.domain.job import JobId
from noonday.store.rows import job_rows, job_values
from tests.factories import NOON

DEFAULTS = JobDefaults()
SOME: list[dict[str, Any]] = [
    {},
    {"cronExpression": "  0   9 * * 1 "},
    {"config": {"batchSize": 1}},
    {"config": {"batchSize": True}},
    {"config": {}, "metadata": {}},
    {"metadata": {"owner": "ops"}, "displayName": "Digest", "critical": True},
    {"critical": False, "jobType": "email"},
    {"enabled": False},
    {"enabled": True},
    {"enabled": None, "description": None},
    {"description": "weekly", "tags": ["b", "a", "b"], "priority": 1},
    {"description": "weekly", "tags": ["b", "a"], "priority": 1, "endpoint": "/jobs/other"},
    {"timezone": "Europe/Berlin", "timeoutSeconds": 5, "maxRetries": 0, "retryBackoffSeconds": 1.5},
    {"timezone": "Europe/Berlin", "timeoutSeconds": 5.0, "maxRetries": 0, "retryBackoffSeconds": 1.5},
    {"misfireGraceSeconds": 0, "maxInstances": 2, "overlap": "queue"},
    {"dependsOn": ["job-0"], "onSuccessOf": ["job-1"]},
    {"override": True, "service": "email-service"},
    {"override": ["cronExpression", "config.batchSize"]},
    {"name": "wöchentlich"},
]


def body(jobs: list[dict[str, Any]]) -> RegisterAllBody:
    usual = {"cronExpression": "0 9 * * 1", "endpoint": "/jobs/digest"}
    made = [{"name": f"job-{place}", **usual, **job} for place, job in enumerate(jobs)]
    return RegisterAllBody.model_validate({"service": "email-service", "jobs": made})


def without_id(said: Declaration) -> Declaration:
    return replace(said, job=replace(said.job, id=JobId("")))


def test_it_makes_of_many_what_it_makes_of_each() -> None:
    sent = body(SOME + [{**one, "name": f"again-{place}"} for place, one in enumerate(SOME)])
    made = to_declarations(sent, NOON, DEFAULTS)
    alone = [to_declaration(one, sent.service, NOON, DEFAULTS) for one in sent.jobs]
    assert [without_id(one) for one in made] == [without_id(one) for one in alone]
    assert [repr(without_id(one)) for one in made] == [
        repr(without_id(one)) for one in alone
    ]  # 1 is not True
    ids = [one.job.id for one in made]
    assert ids == sorted(set(ids))


def test_what_is_written_of_many_is_what_is_written_of_each() -> None:
    made = [one.job for one in to_declarations(body(SOME), NOON, DEFAULTS)]
    assert repr(snapshots(made)) == repr([snapshot(job) for job in made])
    assert job_rows(made) == [job_values(job) for job in made]
    assert snapshots([]) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"endpoint": f"/jobs?key={MASK}"}, "target.endpoint"),
        ({"config": {"password": MASK}}, "config.password"),
        ({"metadata": {"notes": [MASK]}}, "metadata.notes[0]"),
    ],
)
def test_a_mask_is_refused_in_each_of_many(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as alone:
        to_declarations(body([wrong]), NOON, DEFAULTS)
    with pytest.raises(Invalid) as behind:
        to_declarations(body([{}, {}, wrong]), NOON, DEFAULTS)
    assert [problem.field for problem in alone.value.problems] == [f"jobs[0].{field}"]
    assert [problem.field for problem in behind.value.problems] == [f"jobs[2].{field}"]
    assert [one.message for one in alone.value.problems] == [one.message for one in behind.value.problems]
