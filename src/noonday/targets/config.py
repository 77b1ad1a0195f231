"""What the targets need to know, handed down once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version

from noonday.clock import Clock, SystemClock
from noonday.targets.network import NetworkPolicy
from noonday.targets.tasks import TaskRegistry, registered

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TMPDIR", "TZ", "USER")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment() -> dict[str, str]:
    """What a command inherits: enough to find its programs, none of the scheduler's settings or secrets."""
    found = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": _SYSTEM_PATH, **found}


def default_user_agent() -> str:
    try:
        return f"noonday/{version('noonday')}"
    except PackageNotFoundError:
        return "noonday"


def _nowhere() -> None:
    return None


def _unknown(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetsConfig:
    signing_secret: bytes = field(repr=False)
    previous_signing_secret: bytes | None = field(default=None, repr=False)  # while receivers change keys
    user_agent: str = field(default_factory=default_user_agent)
    public_url: str | None = None  # where callbacks reach us; without it a 202 is an ordinary answer
    find_public_url: Callable[[], str | None] = _nowhere  # asked at each call where that is not known
    services: Mapping[str, str] = field(default_factory=dict)  # name (or its variable's name) -> base URL
    find_service: Callable[[str], str | None] = _unknown  # the base URL of one that is not among these
    networks: NetworkPolicy = field(default_factory=NetworkPolicy)
    max_body_read: int = 10 * 1024 * 1024  # of which 64 KiB are kept
    per_host_limit: int = 8  # calls in flight to one host and port; further ones wait within their time-out
    connect_timeout: timedelta = timedelta(seconds=10)
    thread_slots: int = 32
    tasks: TaskRegistry = registered
    task_modules: tuple[str, ...] = ()  # modules whose functions may be called by path; "*" = any
    environment: Mapping[str, str] = field(default_factory=clean_environment)
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        if not self.signing_secret:
            raise ValueError("the signing secret is empty")

    @property
    def callback_base(self) -> str | None:
        return self.public_url or self.find_public_url()

    @property
    def signing_secrets(self) -> tuple[bytes, ...]:
        previous = self.previous_signing_secret
        return (self.signing_secret, previous) if previous else (self.signing_secret,)
