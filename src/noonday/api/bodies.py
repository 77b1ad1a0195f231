"""What a caller may send: shapes and bounds, unknown names refused."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from noonday.api.fields import (
    Country,
    Description,
    Endpoint,
    Environment,
    Headers,
    HttpUrl,
    Instant,
    JobRefs,
    Label,
    Name,
    Pattern,
    ServiceName,
    Tags,
    WallTime,
    Weekday,
    Weekdays,
)
from noonday.domain.calendar import Outside
from noonday.domain.job import CatchUp, OnLost, Overlap
from noonday.domain.schedule import IntervalUnit

DAY = 86_400


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("is not a date; write 2027-01-31") from None


_DATE_SCHEMA = WithJsonSchema({"type": "string", "format": "date"})
Day = Annotated[date, Field(strict=False), BeforeValidator(_date), _DATE_SCHEMA]


class HttpBody(Body):
    type: Literal["http"]
    url: HttpUrl
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "POST"
    headers: Headers = {}
    body: Any = None
    expected_status: Annotated[list[Annotated[int, Field(ge=100, le=599)]], Field(max_length=50)] = []
    heartbeat_seconds: Annotated[int, Field(ge=1, le=DAY)] = 60


class ServiceBody(Body):
    type: Literal["service"]
    service: ServiceName
    endpoint: Endpoint
    headers: Headers = {}
    heartbeat_seconds: Annotated[int, Field(ge=1, le=DAY)] = 60


class FetchBody(Body):
    type: Literal["fetch"]
    url: HttpUrl
    headers: Headers = {}


class PythonBody(Body):
    type: Literal["python"]
    task: Label
    args: Annotated[list[Any], Field(max_length=100)] = []
    kwargs: dict[str, Any] = {}


class CommandBody(Body):
    type: Literal["command"]
    argv: Annotated[list[Annotated[str, Field(max_length=32_768)]], Field(min_length=1, max_length=256)]
    env: Environment = {}
    cwd: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    stdin: str | None = None
    cpu_seconds: Annotated[int, Field(ge=1, le=365 * DAY)] | None = None
    memory_mb: Annotated[int, Field(ge=1, le=1 << 24)] | None = None


TargetBody = Annotated[
    HttpBody | ServiceBody | FetchBody | PythonBody | CommandBody, Field(discriminator="type")
]


class WindowBody(Body):
    days: Weekdays = [1, 2, 3, 4, 5, 6, 7]
    start: WallTime
    end: WallTime


class CalendarBody(Body):
    excluded_dates: Annotated[list[Day], Field(max_length=1000)] = []
    holidays: Country | None = None


class TimeConfigBody(Body):
    minute: Annotated[int, Field(ge=0, le=59)] | None = None
    hour: Annotated[int, Field(ge=0, le=23)] | None = None
    day: Weekday | None = None
    day_of_month: Annotated[int, Field(ge=1, le=31)] | None = None
    cron: str | None = None
    cron_expression: str | None = None
    expression: str | None = None


Kind = Literal["cron", "interval", "calendar", "immediate", "once", "event", "manual"]
CronText = Annotated[str, Field(min_length=1, max_length=200)]


class ScheduleBody(Body):
    """Everything that decides when a job is due."""

    schedule_type: Kind | None = None
    cron_expression: CronText | None = None
    schedule_time: CronText | None = Field(None, description="a cron text under its former name")
    interval_minutes: Annotated[int, Field(ge=1, le=315_360_000)] | None = Field(
        None, description="counts in units of interval_type"
    )
    interval_type: Annotated[IntervalUnit, Field(strict=False)] | None = None
    after_completion: bool | None = None
    frequency: Literal["hourly", "daily", "weekly", "monthly", "cron"] | None = None
    time_config: TimeConfigBody | None = None
    run_at: Instant | None = None
    timezone: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    jitter_seconds: Annotated[float, Field(ge=0, le=DAY)] | None = None
    windows: Annotated[list[WindowBody], Field(max_length=50)] | None = None
    calendar: CalendarBody | None = None
    outside: Annotated[Outside, Field(strict=False)] | None = None
    trigger_webhook: Pattern | None = None
    trigger_channel: Label | None = None


# Kept by the scheduler itself. Taken back without effect, so that what was read can be sent again.
READ_ONLY = frozenset(
    [
        "id",
        "status",
        "is_paused",
        "paused_until",
        "next_run_at",
        "next_runs",
        "schedule_words",
        "last_run_at",
        "last_status",
        "fire_count",
        "current_retry_count",
        "lock_token",
        "lock_acquired_at",
        "created_at",
        "updated_at",
        "revision",
    ]
)


class JobBody(ScheduleBody):
    """A job as people define it; every field is optional, a job needs a `target` or a `url`."""

    OTHER_NAMES: ClassVar[dict[str, str]] = {"enabled": "schedule_enabled"}

    name: Name | None = None
    description: Description | None = None
    tags: Tags | None = None
    source_id: Label | None = None
    url: HttpUrl | None = None
    target: TargetBody | None = None
    config: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = Field(None, description="1 high, 2 normal, 3 low")
    timeout_seconds: Annotated[float, Field(gt=0, le=30 * DAY)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    retry_backoff_seconds: Annotated[float, Field(ge=0, le=DAY)] | None = None
    retry_jitter: bool | None = None
    on_lost: Annotated[OnLost, Field(strict=False)] | None = None
    misfire_grace_seconds: Annotated[float, Field(ge=0, le=3650 * DAY)] | None = None
    coalesce: bool | None = None
    catch_up: Annotated[CatchUp, Field(strict=False)] | None = None
    max_instances: Annotated[int, Field(ge=1, le=1000)] | None = None
    overlap: Annotated[Overlap, Field(strict=False)] | None = None
    depends_on: JobRefs | None = Field(None, description="ids or names of jobs")
    on_success_of: JobRefs | None = Field(None, description="ids or names of jobs")
    schedule_enabled: bool | None = None
    retention_runs: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    retention_days: Annotated[int, Field(ge=0, le=36_500)] | None = None
    scheduler_version: Annotated[int, Field(ge=1, le=2)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_it_was_read(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {key: item for key, item in value.items() if key not in READ_ONLY}
        for other, name in cls.OTHER_NAMES.items():
            if other in kept and name not in kept:
                kept[name] = kept.pop(other)
        return kept


class PreviewBody(ScheduleBody):
    count: Annotated[int, Field(ge=1, le=100)] = 5
    after: Instant | None = Field(None, description="look from here on instead of from now")
    job_id: Label | None = Field(None, description="what H is spread by")


class RunBody(Body):
    """What a forced run may change."""

    config: dict[str, Any] | None = Field(None, description="in place of the job's config")


class PauseBody(Body):
    until: Instant | None = Field(None, description="when the pause ends by itself; without it, never")


class ResumeBody(Body):
    catch_up: bool = Field(False, description="treat what fell into the pause as the misfire rules say")


class DrainBody(Body):
    instance: Label | None = Field(None, description="the id of one instance; without it, all of them")


class MoveBody(Body):
    """Which jobs go to the other engine: all, those with a tag, or those named."""

    to: Annotated[int, Field(ge=1, le=2, description="1: the database engine, 2: the streams engine")]
    all: bool = False
    jobs: Annotated[list[Label], Field(max_length=1000)] = Field([], description="names or ids")
    tag: Label | None = None
    dry_run: bool = Field(False, description="only say what would move")


class FinishBody(Body):
    undo: bool = Field(False, description="let there be version 1 again")


class ReportBody(Body):
    """A sign of life of a run that answered 202."""

    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    message: Annotated[str, Field(max_length=1000)] | None = None
    output: (
        Annotated[str, Field(max_length=64 * 1024, description="what it has written since the last report")]
        | None
    ) = None


Count = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]


class ResultBody(Body):
    """How a run that answered 202 ended; names as in a JobResult, or with underscores."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    success: bool
    items_processed: Count | None = Field(None, alias="itemsProcessed")
    items_succeeded: Count | None = Field(None, alias="itemsSucceeded")
    items_failed: Count | None = Field(None, alias="itemsFailed")
    error: Annotated[str, Field(max_length=65_536)] | None = None
    metadata: dict[str, Any] = {}
    retryable: bool = True


class HeartbeatCall(Body):
    type: Literal["heartbeat"]


class ProgressCall(ReportBody):
    type: Literal["progress"]


class ResultCall(ResultBody):
    type: Literal["result"]


CallbackBody = Annotated[HeartbeatCall | ProgressCall | ResultCall, Field(discriminator="type")]
