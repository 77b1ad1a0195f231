"""Every setting of a process: read once from flags and environment, handed down as small frozen configs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from noonday.domain.claims import Rules
from noonday.domain.errors import Invalid, Problem
from noonday.domain.signatures import secrets_of
from noonday.settings.secrets import check_secret, read_public_key
from noonday.settings.sources import (
    HIDDEN,
    Source,
    env_names,
    gathered,
    is_blank,
    named,
    service_variable,
    shown,
    without_password,
)
from noonday.settings.values import (
    DatabaseUrl,
    Duration,
    LogFormat,
    LogLevel,
    NetworkMode,
    Origins,
    RedisUrl,
    Roles,
    Span,
    Url,
    Words,
    is_loopback,
)

_ANY = ("0.0.0.0", "::", "[::]")  # noqa: S104 (compared with, not bound to)


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = named("127.0.0.1", "HOST", min_length=1)
    port: int = named(8060, "PORT", ge=0, le=65535)
    public_url: Url | None = named(None, "PUBLIC_URL")
    named_hosts: Words = named((), "ALLOWED_HOSTS")
    allow_open: bool = named(False, "SCHEDULER_ALLOW_OPEN")

    database_url: DatabaseUrl = named("sqlite:///.noonday/noonday.db", "DATABASE_URL", secret=True)
    database_pooled: bool = named(False, "DATABASE_TRANSACTION_POOLING")
    redis_url: RedisUrl | None = named(None, "REDIS_URL", secret=True)
    redis_host: str | None = named(None, "REDIS_HOST")
    redis_port: int = named(6379, "REDIS_PORT", ge=1, le=65535)
    redis_db: int = named(0, "REDIS_DB", ge=0)
    redis_password: SecretStr | None = named(None, "REDIS_PASSWORD", secret=True)

    # who may do what; on as soon as one of the keys is given
    auth_enabled: bool = named(False, "AUTH_ENABLED")
    jwt_secret: SecretStr | None = named(None, "JWT_SECRET", secret=True)
    jwt_public_key: SecretStr | None = named(None, "JWT_PUBLIC_KEY", secret=True)
    jwks_url: Url | None = named(None, "JWT_JWKS_URL")
    jwt_issuer: str | None = named(None, "JWT_ISSUER", max_length=500)
    jwt_audience: str | None = named(None, "JWT_AUDIENCE", max_length=500)
    jwt_role_claim: str = named("role", "JWT_ROLE_CLAIM", min_length=1, max_length=200)
    frontend_urls: Origins = named((), "FRONTEND_URL")
    webhook_secrets: SecretStr | None = named(None, "SCHEDULER_WEBHOOK_SECRET", secret=True)
    trigger_rate: int = named(600, "SCHEDULER_TRIGGER_RATE", ge=0, le=10_000_000)
    idempotency_ttl: Span = named(timedelta(hours=24), "IDEMPOTENCY_TTL")
    events_keep: int = named(10_000, "EVENTS_KEEP", ge=0, le=1_000_000)

    log_level: LogLevel = named("info", "LOG_LEVEL")
    log_format: LogFormat = named("auto", "LOG_FORMAT")

    scheduler_enabled: bool = named(True, "SCHEDULER_ENABLED")
    roles: Roles = named(("api", "scheduler", "worker"), "SCHEDULER_ROLES")
    v2_enabled: bool = named(True, "SCHEDULER_V2_ENABLED")
    instance_id: str | None = named(None, "SCHEDULER_INSTANCE_ID", max_length=200)
    workers: int = named(10, "SCHEDULER_WORKER_POOL_SIZE", "MAX_WORKERS", ge=1, le=1000)
    lease_ttl: Span = named(timedelta(seconds=30), "SCHEDULER_LEASE_TTL")
    lookahead: Duration = named(timedelta(seconds=2), "SCHEDULER_LOOKAHEAD")
    check_interval: Span = named(timedelta(seconds=60), "SCHEDULE_CHECK_INTERVAL")
    shutdown_grace: Duration = named(timedelta(seconds=30), "SHUTDOWN_GRACE")
    queue_batch_size: int = named(500, "SCHEDULER_QUEUE_BATCH_SIZE", ge=1, le=10_000)
    # Not {1,100}: pydantic's regex would take 9 MB for that.
    queue_prefix: str = named("crawler", "SCHEDULER_QUEUE_PREFIX", pattern=r"^[\w.:-]+$", max_length=100)
    leader_ttl: Span = named(timedelta(seconds=30), "SCHEDULER_LEADER_TTL")
    leader_key: str = named("scheduler-leader", "SCHEDULER_LEADER_KEY", min_length=1, max_length=200)
    cb_threshold: int = named(5, "SCHEDULER_CB_THRESHOLD", ge=1)
    cb_timeout: Span = named(timedelta(seconds=60), "SCHEDULER_CB_TIMEOUT")
    metrics_namespace: str = named(
        "crawler", "SCHEDULER_METRICS_NAMESPACE", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    metrics_port: int | None = named(None, "METRICS_PORT", ge=0, le=65535)

    # defaults of new jobs
    job_timeout: Span = named(timedelta(hours=1), "SCHEDULER_JOB_TIMEOUT")
    job_max_instances: int = named(1, "JOB_MAX_INSTANCES", ge=1, le=1000)
    job_coalesce: bool = named(True, "JOB_COALESCE")
    job_misfire_grace: Duration = named(timedelta(seconds=300), "JOB_MISFIRE_GRACE_TIME")
    # As with the library the name comes from: a job registered again replaces its definition, not its run.
    job_replace_existing: bool = named(True, "JOB_REPLACE_EXISTING_INSTANCE")

    history_keep_runs: int = named(100, "HISTORY_KEEP_RUNS", ge=0)
    history_keep_days: int = named(30, "HISTORY_KEEP_DAYS", ge=0, le=36_500)

    network_mode: NetworkMode = named("open", "NETWORK_MODE")
    network_allow: Words = named((), "NETWORK_ALLOW")
    network_deny: Words = named((), "NETWORK_DENY")
    task_modules: Words = named((), "TASK_MODULES")
    services: Mapping[str, Url] = Field(default_factory=dict)

    origins: Mapping[str, str] = Field(default_factory=dict, repr=False)  # field -> where its value came from

    def __init__(self, **flags: Any) -> None:
        super().__init__(**gathered(type(self).model_fields, flags))

    @field_validator("roles")
    @classmethod
    def _leaves_something_to_run(cls, roles: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not info.data.get("scheduler_enabled", True) and "api" not in roles:
            raise ValueError("leaves nothing to run while SCHEDULER_ENABLED=false, which means the API alone")
        return roles

    @field_validator("jwt_secret")
    @classmethod
    def _is_a_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            check_secret(secret.get_secret_value())
        return secret

    @field_validator("jwt_public_key")
    @classmethod
    def _is_a_public_key(cls, pem: SecretStr | None) -> SecretStr | None:
        if pem is not None:
            read_public_key(pem.get_secret_value())
        return pem

    @field_validator("webhook_secrets")
    @classmethod
    def _are_secrets(cls, secrets: SecretStr | None) -> SecretStr | None:
        if secrets is not None:
            try:
                secrets_of(secrets.get_secret_value())
            except Invalid as error:
                raise ValueError(error.problems[0].message) from None
        return secrets

    @property
    def auth(self) -> bool:
        """Does everybody have to say who they are?"""
        keys = (self.jwt_secret, self.jwt_public_key, self.jwks_url)
        return self.auth_enabled or any(key is not None for key in keys)

    @property
    def token_rules(self) -> Rules:
        """What tokens must say; `noonday token` makes them so."""
        return Rules(
            issuer=self.jwt_issuer or "noonday",
            audience=self.jwt_audience or "noonday",
            role_claim=self.jwt_role_claim,
        )

    @model_validator(mode="after")
    def _refuses_to_be_open_to_the_network(self) -> Self:
        safe = self.auth or self.allow_open or is_loopback(self.host)
        if "api" in self.running_roles and not safe:
            raise ValueError(
                "would let anybody on the network create and run jobs. Set AUTH_ENABLED=true (noonday key "
                "create makes keys) or JWT_SECRET, use a loopback address, or set SCHEDULER_ALLOW_OPEN=true "
                "where the network itself is closed"
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
                lines.append(Source(env_names(field)[0], shown(field, getattr(self, name)), origin))
        for service, url in sorted(self.services.items()):
            lines.append(Source(service_variable(service), without_password(url), "environment"))
        return lines


def load(**flags: Any) -> Settings:
    """The settings in force; a wrong value raises Invalid, which names the variable and the value."""
    try:
        settings = Settings(**flags)
    except ValidationError as error:
        raise Invalid(*(_problem(dict(line)) for line in error.errors())) from error
    if problems := tuple(_at_odds(settings)):
        raise Invalid(*problems)
    return settings


def _at_odds(settings: Settings) -> Iterator[Problem]:
    """What only several settings together show to be wrong."""
    secrets = {"JWT_SECRET": settings.jwt_secret, "SCHEDULER_WEBHOOK_SECRET": settings.webhook_secrets}
    for name, secret in secrets.items():
        if secret is None and is_blank(name):
            yield Problem(name, "is empty, and whoever sets it means to have one: leave it out or fill it")
    if settings.jwks_url is None:
        return
    # Whoever lends its keys to many programs signs tokens that are meant for others too.
    for name, value in (("JWT_ISSUER", settings.jwt_issuer), ("JWT_AUDIENCE", settings.jwt_audience)):
        if value is None:
            yield Problem(name, "must be set where JWT_JWKS_URL is: tokens for others would be good here")
    where = urlsplit(settings.jwks_url)
    if where.scheme != "https" and not settings.allow_open and not is_loopback(where.hostname or ""):
        shown = repr(without_password(settings.jwks_url))
        yield Problem("JWT_JWKS_URL", f"{shown} must begin with https://: keys may be swapped on their way")


def _problem(line: Mapping[str, Any]) -> Problem:
    name = str(line["loc"][0]) if line["loc"] else "host"  # the one check over the whole is about HOST
    field = Settings.model_fields.get(name)
    value: object = line["input"]
    if not line["loc"] and isinstance(value, dict):
        value = value.get("host")
    why = line["msg"].removeprefix("Value error, ")
    if name == "services":
        return Problem(service_variable(str(line["loc"][-1])), f"{without_password(str(value))!r} {why}")
    if field is None:
        return Problem(name, "is not a setting")
    sent = HIDDEN if field.annotation == SecretStr | None else repr(without_password(str(value)))
    return Problem(" / ".join(env_names(field)), f"{sent} {why.replace('Input should', 'should')}")
