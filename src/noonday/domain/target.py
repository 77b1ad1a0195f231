"""What a job runs: plain descriptions; the hands that run them are in `targets/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any  # what json.loads returns


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = None  # a string is sent as it is, anything else as JSON
    expected_status: tuple[int, ...] = ()  # none = any 2xx
    heartbeat_seconds: int = 60  # after a 202: how long silence may last
    type: Literal["http"] = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTarget:
    """`POST {base url of service}{endpoint}` with a JobContext; the answer is a JobResult."""

    service: str
    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)
    heartbeat_seconds: int = 60
    type: Literal["service"] = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    type: Literal["fetch"] = "fetch"


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTarget:
    """A registered task's name or a dotted path `package.module:function`."""

    task: str
    args: tuple[Json, ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)
    type: Literal["python"] = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None
    cpu_seconds: int | None = None
    memory_mb: int | None = None
    type: Literal["command"] = "command"


Target = HttpTarget | ServiceTarget | FetchTarget | PythonTarget | CommandTarget
