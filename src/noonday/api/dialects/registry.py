"""What services send to the registry, in camelCase, and the declarations that it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from noonday.api.bodies import DAY, Body, CronText
from noonday.api.fields import Description, Endpoint, JobRefs, Label, Name, ServiceName, Tags
from noonday.api.schedules import cron_of
from noonday.api.schemas import JobBody, JobDefaults, to_job
from noonday.control.registry import Declaration
from noonday.control.secrets import restored
from noonday.domain.declaring import IN_METADATA, fields_of
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.job import Job, JobId, Overlap
from noonday.ids import new_ids

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
# Of these, and of what only a declaration has, those that many jobs of a service have the same.
_OWN: Final = frozenset({"name", "service", "endpoint", "cron_expression", "config", "metadata", "override"})
_SHARED: Final = tuple(
    name for name in DeclarationBody.model_fields if name not in _OWN | set(IN_METADATA.values())
)
_CAMEL: Final = {name: to_camel(name) for name in DeclarationBody.model_fields}
# What has no usual value: it is always said.
_ALWAYS_SAID: Final = frozenset({"cronExpression", "service", "endpoint"})


def to_declarations(body: RegisterAllBody, now: datetime, defaults: JobDefaults) -> list[Declaration]:
    seen: set[str] = set()
    made = []
    maker = _Maker(body.service, now, defaults, len(body.jobs))
    for place, one in enumerate(body.jobs):
        if one.name in seen:
            raise invalid(f"jobs[{place}].name", one.name, "is there twice")
        if one.service not in (None, body.service):
            raise invalid(f"jobs[{place}].service", one.service, f"is not {body.service}")
        seen.add(one.name)
        try:
            made.append(maker.declaration(one))
        except Invalid as error:
            problems = (Problem(f"jobs[{place}].{each.field}", each.message) for each in error.problems)
            raise Invalid(*problems) from error
    return made


def to_declaration(body: DeclarationBody, service: str, now: datetime, defaults: JobDefaults) -> Declaration:
    return _Maker(service, now, defaults, 1).declaration(body)


class _Maker:
    """Declarations of one service are much alike: a job like one before it is made of that one."""

    def __init__(self, service: str, now: datetime, defaults: JobDefaults, count: int) -> None:
        self._service, self._now, self._defaults = service, now, defaults
        self._usual = _usual(defaults)
        self._ids = map(JobId, new_ids(now, count))
        self._models: dict[tuple[Any, ...], Job] = {}
        self._named: dict[frozenset[str], frozenset[str]] = {}
        self._nothing: dict[str, Any] = {}

    def declaration(self, body: DeclarationBody) -> Declaration:
        said = frozenset([name for name in body.model_fields_set if getattr(body, name) is not None])
        if said not in self._named:
            names = frozenset(_CAMEL[name] for name in said - {"name", "override"})
            self._named[said] = names | _ALWAYS_SAID
        return Declaration(
            service=self._service,
            job=self._job(body, said),
            named=self._named[said],
            usual=self._usual,
            override=body.override if isinstance(body.override, bool) else frozenset(body.override),
        )

    def _job(self, body: DeclarationBody, said: frozenset[str]) -> Job:
        metadata = body.metadata or self._nothing
        if own := {key: getattr(body, key) for key in IN_METADATA.values() if key in said}:
            metadata = metadata | own
        like = tuple([(name, _fixed(getattr(body, name))) for name in _SHARED if name in said])
        model = self._models.get(like)
        # Other letters may be written in several ways, and a name be longer in one of them.
        if model is not None and body.name.isascii():
            return self._after(model, body, metadata)
        self._models[like] = made = self._anew(body, said, metadata)
        return made

    def _anew(self, body: DeclarationBody, said: frozenset[str], metadata: Mapping[str, Any]) -> Job:
        values = {name: getattr(body, name) for name in said & _SAME}
        values["target"] = {"type": "service", "service": self._service, "endpoint": body.endpoint}
        values["metadata"] = metadata
        if body.enabled is not None:
            values["schedule_enabled"] = body.enabled
        return to_job(JobBody.model_validate(values), next(self._ids), self._now, self._defaults)

    def _after(self, model: Job, body: DeclarationBody, metadata: Mapping[str, Any]) -> Job:
        endpoint = restored(body.endpoint, None, "target.endpoint")
        return model.altered(
            id=next(self._ids),
            name=body.name,
            target=replace(model.target, endpoint=endpoint),
            timing=replace(model.timing, schedule=cron_of(body.cron_expression)),
            config=restored(self._nothing if body.config is None else body.config, None, "config"),
            metadata=restored(metadata, None, "metadata"),
        )


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=8)
def _usual(defaults: JobDefaults) -> Mapping[str, Any]:
    """What holds where a declaration is silent, whatever else it says."""
    target = {"type": "service", "service": "any", "endpoint": "/"}
    bare = {"name": "any", "cron_expression": "@daily", "target": target}
    job = to_job(JobBody.model_validate(bare), JobId("any"), datetime(2000, 1, 1, tzinfo=UTC), defaults)
    return {name: value for name, value in fields_of(job).items() if name not in _ALWAYS_SAID}


_PATH = re.compile(r"(jobs\[\d+\]\.)?(?:target\.)?(\w+)(.*)", re.DOTALL)


def as_sent(error: Invalid) -> Invalid:
    """The same problems, under the names that the service wrote."""
    return Invalid(*(Problem(_as_sent(problem.field), problem.message) for problem in error.problems))


def _as_sent(field: str) -> str:
    match = _PATH.fullmatch(field)
    return f"{match[1] or ''}{to_camel(match[2])}{match[3]}" if match else field
