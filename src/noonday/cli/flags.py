"""Flags that several commands share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import Parameter

__all__ = ["Db", "Json", "SchedulerFlags", "ServeFlags", "Utc", "WorkerFlags", "Yes"]

Db = Annotated[
    str | None,
    Parameter(alias="--db", help="The database [DATABASE_URL, sqlite:///.noonday/noonday.db]."),
]
Json = Annotated[bool, Parameter(help="As JSON, for programs.")]
Utc = Annotated[bool, Parameter(help="Show times in UTC instead of the local zone.")]
Yes = Annotated[bool, Parameter(alias="-y", help="Do not ask.")]

_FIELDS = {"tasks": "task_modules", "role": "roles"}  # flags that are named otherwise than their setting


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFlags:
    """Each flag wins over its environment variable, which stands in brackets."""

    database_url: Annotated[str | None, Parameter(alias="--db")] = None
    "sqlite:///path or postgresql://user@host/name [DATABASE_URL, sqlite:///.noonday/noonday.db]."
    redis_url: str | None = None
    "redis://host:port/db [REDIS_URL, none]."
    log_level: str | None = None
    "debug, info, warning, error or critical [LOG_LEVEL, info]."
    log_format: str | None = None
    "auto, json or console [LOG_FORMAT, auto]."
    instance_id: str | None = None
    "The name of this instance among others [SCHEDULER_INSTANCE_ID, made up]."
    shutdown_grace: str | None = None
    "How long running work may take to finish at shutdown, e.g. 30s [SHUTDOWN_GRACE, 30s]."

    def given(self) -> dict[str, object]:
        named = {_FIELDS.get(name, name): value for name, value in asdict(self).items()}
        return {name: value for name, value in named.items() if value is not None}

    def words(self) -> list[str]:
        """As they were typed, for another process, which has a name of its own."""
        return [
            f"--{name.replace('_', '-')}={value}"
            for name, value in asdict(self).items()
            if value is not None and name != "instance_id"
        ]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFlags(SchedulerFlags):
    """Each flag wins over its environment variable, which stands in brackets."""

    workers: Annotated[int | None, Parameter(alias="-w")] = None
    "How many executions run at the same time [MAX_WORKERS, 10]."
    tasks: Annotated[str | None, Parameter(alias="-t")] = None
    "Modules that register Python tasks, with commas between [TASK_MODULES, none]."
    lease_ttl: str | None = None
    "How long a worker may be silent before its work is taken over, e.g. 30s [SCHEDULER_LEASE_TTL, 30s]."
    public_url: str | None = None
    "How targets reach an API for their callbacks [PUBLIC_URL, that of an instance with the API]."


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags(WorkerFlags):
    """Each flag wins over its environment variable, which stands in brackets."""

    host: str | None = None
    "Address to listen on [HOST, 127.0.0.1]."
    port: int | None = None
    "Port to listen on [PORT, 8060]."
    role: list[str] | None = None
    "What this process does: api, scheduler, worker, or several with commas between [SCHEDULER_ROLES, all]."
    allow_open: bool | None = None
    "Listen beyond loopback without sign-in: only in a closed network [SCHEDULER_ALLOW_OPEN, false]."
