"""What services send to the registry, in camelCase, and the declarations that it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from noonday.api.bodies import DAY, Body, CronText
from noonday.api.fields import Description, Endpoint, JobRefs, Label, Name, ServiceName, Tags
from noonday.api.schemas import JobBody, JobDefaults, to_job
from noonday.control.registry import Declaration
from noonday.domain.declaring import IN_METADATA, fields_of
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.job import Job, JobId, Overlap
from noonday.ids import new_id

__all__ = ["CronBody", "RegisterAllBody", "RegisterBody", "as_sent", "to_declaration", "to_declarations"]

_MOST_JOBS: Final = 200  # in one transaction


class CamelBody(Body):
    """Names as services write them, or with underscores."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class DeclarationBody(CamelBody):
    """What a service says of one of its jobs; what it leaves out is as usual."""

    name: Name
    display_name: Label | None = None
    description: Description | None = None
    cron_expression: CronText
    timezone: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    enabled: bool | None = None
    job_type: Label | None = None
    service: ServiceName | None = None
    endpoint: Endpoint
    config: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    critical: bool | None = Field(None, description="whether the scheduler is unwell while this job is")
    tags: Tags | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = Field(None, description="1 high, 2 normal, 3 low")
    timeout_seconds: Annotated[float, Field(gt=0, le=30 * DAY)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    retry_backoff_seconds: Annotated[float, Field(ge=0, le=DAY)] | None = None
    misfire_grace_seconds: Annotated[float, Field(ge=0, le=3650 * DAY)] | None = None
    max_instances: Annotated[int, Field(ge=1, le=1000)] | None = None
    overlap: Annotated[Overlap, Field(strict=False)] | None = None
    depends_on: JobRefs | None = Field(None, description="ids or names of jobs")
    on_success_of: JobRefs | None = Field(None, description="ids or names of jobs")
    override: bool | Annotated[list[Label], Field(max_length=100)] = Field(
        False,
        description="take these fields, or all, as declared, even where somebody changed the job meanwhile",
    )

    @field_validator("metadata")
    @classmethod
    def _has_fields_of_its_own(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, key in IN_METADATA.items():
            if key in (value or {}):
                raise ValueError(f"must not hold {key!r}: that is the field {name}")
        return value

    @field_validator("override")
    @classmethod
    def _names_fields(cls, value: bool | list[str]) -> bool | list[str]:
        known = {to_camel(name) for name in cls.model_fields} - {"name", "override"}
        for name in value if isinstance(value, list) else ():
            if name.partition(".")[0] not in known:
                raise ValueError(f"{name!r} is not a field that can be declared")
        return value


class RegisterBody(DeclarationBody):
    service: ServiceName


class RegisterAllBody(CamelBody):
    """All jobs of a service."""

    service: ServiceName
    jobs: Annotated[list[DeclarationBody], Field(max_length=_MOST_JOBS)]
    prune: Literal["disable", "keep"] = Field(
        "keep", description="what becomes of jobs that the service declared before and does not declare now"
    )


class CronBody(CamelBody):
    cron_expression: CronText
    timezone: Annotated[str, Field(min_length=1, max_length=100)] | None = None


# Fields that a job has under the same name.
_SAME: Final = frozenset(JobBody.model_fields) & frozenset(DeclarationBody.model_fields) - {"metadata"}
_CAMEL: Final = {name: to_camel(name) for name in DeclarationBody.model_fields}
# What has no usual value: it is always said.
_ALWAYS_SAID: Final = frozenset({"cronExpression", "service", "endpoint"})


def to_declarations(body: RegisterAllBody, now: datetime, defaults: JobDefaults) -> list[Declaration]:
    seen: set[str] = set()
    made = []
    for place, one in enumerate(body.jobs):
        if one.name in seen:
            raise invalid(f"jobs[{place}].name", one.name, "is there twice")
        if one.service not in (None, body.service):
            raise invalid(f"jobs[{place}].service", one.service, f"is not {body.service}")
        seen.add(one.name)
        try:
            made.append(to_declaration(one, body.service, now, defaults))
        except Invalid as error:
            problems = (Problem(f"jobs[{place}].{each.field}", each.message) for each in error.problems)
            raise Invalid(*problems) from error
    return made


def to_declaration(body: DeclarationBody, service: str, now: datetime, defaults: JobDefaults) -> Declaration:
    said = {name for name in body.model_fields_set if getattr(body, name) is not None}
    values = {name: getattr(body, name) for name in said & _SAME}
    values["target"] = {"type": "service", "service": service, "endpoint": body.endpoint}
    if body.enabled is not None:
        values["schedule_enabled"] = body.enabled
    values["metadata"] = (body.metadata or {}) | {
        key: getattr(body, key) for key in IN_METADATA.values() if key in said
    }
    return Declaration(
        service=service,
        job=_job(values, now, defaults),
        named=frozenset(_CAMEL[name] for name in said - {"name", "override"}) | _ALWAYS_SAID,
        usual=_usual(defaults),
        override=body.override if isinstance(body.override, bool) else frozenset(body.override),
    )


@lru_cache(maxsize=8)
def _usual(defaults: JobDefaults) -> Mapping[str, Any]:
    """What holds where a declaration is silent, whatever else it says."""
    target = {"type": "service", "service": "any", "endpoint": "/"}
    bare = {"name": "any", "cron_expression": "@daily", "target": target}
    found = fields_of(_job(bare, datetime(2000, 1, 1, tzinfo=UTC), defaults))
    return {name: value for name, value in found.items() if name not in _ALWAYS_SAID}


def _job(values: dict[str, Any], now: datetime, defaults: JobDefaults) -> Job:
    return to_job(JobBody.model_validate(values), JobId(new_id(now)), now, defaults)


_PATH = re.compile(r"(jobs\[\d+\]\.)?(?:target\.)?(\w+)(.*)", re.DOTALL)


def as_sent(error: Invalid) -> Invalid:
    """The same problems, under the names that the service wrote."""
    return Invalid(*(Problem(_as_sent(problem.field), problem.message) for problem in error.problems))


def _as_sent(field: str) -> str:
    match = _PATH.fullmatch(field)
    return f"{match[1] or ''}{to_camel(match[2])}{match[3]}" if match else field
