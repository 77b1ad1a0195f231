"""Every setting of a process: read once from flags and environment, handed down as small frozen configs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from noonday.domain.errors import Invalid, Problem

__all__ = ["Settings", "Source", "is_loopback", "load", "parse_duration"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST = timedelta(days=3650)
_SERVICE = re.compile(r"([A-Z0-9_]+)_SERVICE_URL")
_HIDDEN = "********"
_ANY = ("0.0.0.0", "::", "[::]")  # noqa: S104 (compared with, not bound to)


def parse_duration(value: object) -> timedelta:
    """`30s`, `5m`, `1h`, `1h30m`, `250ms`, or plain seconds."""
    if isinstance(value, timedelta):
        return value
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    else:
        parts = _PART.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise ValueError("is not a duration; write seconds (30) or 30s, 5m, 1h, 1h30m")
        seconds = sum(float(n) * _UNITS[u] for n, u in parts)
    if seconds > _LONGEST.total_seconds():
        raise ValueError("is longer than ten years")
    return timedelta(seconds=seconds)


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta():
        raise ValueError("must be longer than zero")
    return value


def _words(value: object) -> object:
    """A comma-separated text as a tuple."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _roles(value: object) -> object:
    """`api,worker`, or several such texts; each role once."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return value
    words = (part.strip().lower() for text in texts for part in str(text).split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _log_level(value: object) -> object:
    word = str(value).strip().lower()
    return {"warn": "warning", "fatal": "critical"}.get(word, word)


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _url(value: str, *, schemes: tuple[str, ...]) -> str:
    if urlsplit(value).scheme.split("+")[0] not in schemes:
        raise ValueError(f"must start with {' or '.join(f'{s}://' for s in schemes)}")
    return value


def _http_base(value: str) -> str:
    if not urlsplit(_url(value, schemes=("http", "https"))).hostname:
        raise ValueError("has no host")
    return value.rstrip("/")


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Span = Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_positive)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Url = Annotated[str, AfterValidator(_http_base)]
DatabaseUrl = Annotated[str, AfterValidator(partial(_url, schemes=("sqlite", "postgresql", "postgres")))]
RedisUrl = Annotated[str, AfterValidator(partial(_url, schemes=("redis", "rediss", "unix")))]
LogLevel = Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_log_level)]
LogFormat = Annotated[Literal["auto", "json", "console"], BeforeValidator(_lower)]
Roles = Annotated[
    tuple[Literal["api", "scheduler", "worker"], ...], BeforeValidator(_roles), Field(min_length=1)
]
NetworkMode = Annotated[Literal["open", "strict"], BeforeValidator(_lower)]


@dataclass(frozen=True, slots=True)
class Source:
    """One line of `noonday config`; the value of a secret is hidden."""

    name: str
    value: str
    origin: str  # "default", "flag", "environment", or "file <path>"


def _named(default: Any, *names: str, secret: bool = False, **bounds: Any) -> Any:
    """A field with its names in the environment, first choice first."""
    return Field(default, repr=not secret, json_schema_extra={"env": list(names), "secret": secret}, **bounds)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=False)

    host: str = _named("127.0.0.1", "HOST", min_length=1)
    port: int = _named(8060, "PORT", ge=0, le=65535)
    public_url: Url | None = _named(None, "PUBLIC_URL")
    named_hosts: Words = _named((), "ALLOWED_HOSTS")
    allow_open: bool = _named(False, "SCHEDULER_ALLOW_OPEN")

    database_url: DatabaseUrl = _named("sqlite:///.noonday/noonday.db", "DATABASE_URL", secret=True)
    database_pooled: bool = _named(False, "DATABASE_TRANSACTION_POOLING")
    redis_url: RedisUrl | None = _named(None, "REDIS_URL", secret=True)
    redis_host: str | None = _named(None, "REDIS_HOST")
    redis_port: int = _named(6379, "REDIS_PORT", ge=1, le=65535)
    redis_db: int = _named(0, "REDIS_DB", ge=0)
    redis_password: SecretStr | None = _named(None, "REDIS_PASSWORD", secret=True)

    log_level: LogLevel = _named("info", "LOG_LEVEL")
    log_format: LogFormat = _named("auto", "LOG_FORMAT")

    scheduler_enabled: bool = _named(True, "SCHEDULER_ENABLED")
    roles: Roles = _named(("api", "scheduler", "worker"), "SCHEDULER_ROLES")
    v2_enabled: bool = _named(True, "SCHEDULER_V2_ENABLED")
    instance_id: str | None = _named(None, "SCHEDULER_INSTANCE_ID", max_length=200)
    workers: int = _named(10, "SCHEDULER_WORKER_POOL_SIZE", "MAX_WORKERS", ge=1, le=1000)
    lease_ttl: Span = _named(timedelta(seconds=30), "SCHEDULER_LEASE_TTL")
    lookahead: Duration = _named(timedelta(seconds=2), "SCHEDULER_LOOKAHEAD")
    check_interval: Span = _named(timedelta(seconds=60), "SCHEDULE_CHECK_INTERVAL")
    shutdown_grace: Duration = _named(timedelta(seconds=30), "SHUTDOWN_GRACE")
    queue_batch_size: int = _named(50, "SCHEDULER_QUEUE_BATCH_SIZE", ge=1, le=10_000)
    queue_prefix: str = _named("crawler", "SCHEDULER_QUEUE_PREFIX", pattern=r"^[\w.:-]{1,100}$")
    leader_ttl: Span = _named(timedelta(seconds=30), "SCHEDULER_LEADER_TTL")
    leader_key: str = _named("scheduler-leader", "SCHEDULER_LEADER_KEY", min_length=1, max_length=200)
    cb_threshold: int = _named(5, "SCHEDULER_CB_THRESHOLD", ge=1)
    cb_timeout: Span = _named(timedelta(seconds=60), "SCHEDULER_CB_TIMEOUT")
    metrics_namespace: str = _named(
        "crawler", "SCHEDULER_METRICS_NAMESPACE", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    metrics_port: int | None = _named(None, "METRICS_PORT", ge=0, le=65535)

    # defaults of new jobs
    job_timeout: Span = _named(timedelta(hours=1), "SCHEDULER_JOB_TIMEOUT")
    job_max_instances: int = _named(1, "JOB_MAX_INSTANCES", ge=1, le=1000)
    job_coalesce: bool = _named(True, "JOB_COALESCE")
    job_misfire_grace: Duration = _named(timedelta(seconds=300), "JOB_MISFIRE_GRACE_TIME")
    # As with the library the name comes from: a job registered again replaces its definition, not its run.
    job_replace_existing: bool = _named(True, "JOB_REPLACE_EXISTING_INSTANCE")

    history_keep_runs: int = _named(100, "HISTORY_KEEP_RUNS", ge=0)
    history_keep_days: int = _named(30, "HISTORY_KEEP_DAYS", ge=0, le=36_500)

    network_mode: NetworkMode = _named("open", "NETWORK_MODE")
    network_allow: Words = _named((), "NETWORK_ALLOW")
    network_deny: Words = _named((), "NETWORK_DENY")
    task_modules: Words = _named((), "TASK_MODULES")
    services: Mapping[str, Url] = Field(default_factory=dict)

    origins: Mapping[str, str] = Field(default_factory=dict, repr=False)  # field -> where its value came from

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (_Layers(settings_cls, init_settings),)

    @field_validator("roles")
    @classmethod
    def _leaves_something_to_run(cls, roles: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not info.data.get("scheduler_enabled", True) and "api" not in roles:
            raise ValueError("leaves nothing to run while SCHEDULER_ENABLED=false, which means the API alone")
        return roles

    @model_validator(mode="after")
    def _refuses_to_be_open_to_the_network(self) -> Self:
        if "api" in self.running_roles and not self.allow_open and not is_loopback(self.host):
            raise ValueError(
                "would let anybody on the network create and run jobs: this version has no sign-in yet. "
                "Use a loopback address, or set SCHEDULER_ALLOW_OPEN=true where the network itself is closed"
            )
        return self

    @property
    def running_roles(self) -> tuple[str, ...]:
        """What this process is to do: with the scheduler switched off, the API alone."""
        return self.roles if self.scheduler_enabled else ("api",)

    @property
    def redis(self) -> str | None:
        """The one URL behind REDIS_URL or REDIS_HOST and its companions."""
        if self.redis_url or not self.redis_host:
            return self.redis_url
        secret = f":{quote(self.redis_password.get_secret_value(), safe='')}@" if self.redis_password else ""
        host = f"[{self.redis_host}]" if ":" in self.redis_host else self.redis_host
        return f"redis://{secret}{host}:{self.redis_port}/{self.redis_db}"

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """The names beside its own under which the API answers; the public one is among them."""
        public = urlsplit(self.public_url).hostname if self.public_url else None
        return (*self.named_hosts, public) if public else self.named_hosts

    @property
    def base_url(self) -> str:
        """Where targets reach this instance for their callbacks."""
        if self.public_url:
            return self.public_url
        host = "localhost" if self.host in _ANY else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def sources(self) -> list[Source]:
        """Every setting in force and where it comes from."""
        lines = []
        for name, field in type(self).model_fields.items():
            if name not in ("origins", "services"):
                origin = self.origins.get(name, "default")
                lines.append(Source(_env_names(field)[0], _shown(field, getattr(self, name)), origin))
        for service, url in sorted(self.services.items()):
            lines.append(Source(_service_variable(service), _without_password(url), "environment"))
        return lines


class _Layers(PydanticBaseSettingsSource):
    """Flags over environment over `*_FILE`, with a note of where each value came from."""

    def __init__(self, settings: type[BaseSettings], flags: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._flags = flags

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        value, origin = _from_environment(_env_names(field), os.environ, secret=_is_secret(field))
        return value, origin, False

    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, field in self.settings_cls.model_fields.items():
            value, origin, _ = self.get_field_value(field, name)
            if value is not None:
                values[name], origins[name] = value, origin
        values["services"] = _services(os.environ)
        flags = {name: value for name, value in self._flags().items() if value is not None}
        origins |= dict.fromkeys(flags, "flag")
        return {**values, **flags, "origins": origins}


def load(**flags: Any) -> Settings:
    """The settings in force; a wrong value raises Invalid, which names the variable and the value."""
    try:
        return Settings(**flags)
    except ValidationError as error:
        raise Invalid(*(_problem(dict(line)) for line in error.errors())) from error


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _from_environment(
    names: list[str], environ: Mapping[str, str], *, secret: bool
) -> tuple[str | None, str]:
    """An empty variable counts as absent; for a secret `NAME_FILE` may name a file that holds it."""
    for name in names:
        if value := environ.get(name, "").strip():
            return value, f"environment {name}"
        if secret and (path := environ.get(f"{name}_FILE", "").strip()):
            try:
                return Path(path).read_text(encoding="utf-8").strip(), f"file {path}"
            except (OSError, UnicodeDecodeError) as error:
                raise Invalid(Problem(f"{name}_FILE", f"{path!r} cannot be read: {error}")) from error
    return None, "default"


def _services(environ: Mapping[str, str]) -> dict[str, str]:
    """`EMAIL_SERVICE_URL` is the base URL of `email-service`."""
    found = ((_SERVICE.fullmatch(name), value.strip()) for name, value in environ.items())
    return {
        match[1].lower().replace("_", "-") + "-service": value for match, value in found if match and value
    }


def _service_variable(service: str) -> str:
    return service.removesuffix("-service").upper().replace("-", "_") + "_SERVICE_URL"


def _env_names(field: FieldInfo) -> list[str]:
    names = field.json_schema_extra.get("env") if isinstance(field.json_schema_extra, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _is_secret(field: FieldInfo) -> bool:
    return isinstance(field.json_schema_extra, dict) and bool(field.json_schema_extra.get("secret"))


def _shown(field: FieldInfo, value: object) -> str:
    match value:
        case None:
            return ""
        case SecretStr():
            return _HIDDEN
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return ",".join(map(str, value))
        case bool():
            return str(value).lower()
        case _:
            return _without_password(str(value)) if _is_secret(field) else str(value)


def _without_password(url: str) -> str:
    """The URL with any password in it, before the host or among the parameters, hidden."""
    url = re.sub(r"^([^/?#]+://[^/?#@:]*):[^/?#]*@", rf"\1:{_HIDDEN}@", url)
    return re.sub(r"([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&#]*", rf"\1{_HIDDEN}", url, flags=re.I)


def _problem(line: Mapping[str, Any]) -> Problem:
    name = str(line["loc"][0]) if line["loc"] else "host"  # the one check over the whole is about HOST
    field = Settings.model_fields.get(name)
    value: object = line["input"]
    if not line["loc"] and isinstance(value, dict):
        value = value.get("host")
    why = line["msg"].removeprefix("Value error, ")
    if name == "services":
        return Problem(_service_variable(str(line["loc"][-1])), f"{_without_password(str(value))!r} {why}")
    if field is None:
        return Problem(name, "is not a setting")
    shown = _HIDDEN if field.annotation == SecretStr | None else repr(_without_password(str(value)))
    return Problem(" / ".join(_env_names(field)), f"{shown} {why.replace('Input should', 'should')}")
