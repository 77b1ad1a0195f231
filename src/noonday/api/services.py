"""What the routes work with, put together by the instance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from noonday.api.door.guard import Access
from noonday.api.door.identity import Identify, anybody
from noonday.api.schemas import JobDefaults
from noonday.clock import Clock
from noonday.control.breakers import Breakers
from noonday.control.engines import Engines
from noonday.control.executions import CheckToken, Executions
from noonday.control.instances import Instances
from noonday.control.jobs import Jobs
from noonday.control.system import LocalStatus, System
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.errors import Unavailable
from noonday.domain.job import Job
from noonday.ports import Silence, Telemetry
from noonday.store.database import Database

__all__ = ["ApiServices", "Ask", "Services", "v2_is_on"]


def _refuse(*_: object) -> bool:
    return False


def _accept(_: Job) -> None:
    pass


async def _nothing_measured() -> bytes:
    return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """`check_token(execution_id, attempt, token)` knows callback tokens; `vet(job)` refuses targets."""

    db: Database
    clock: Clock
    status: Callable[[], LocalStatus]
    check_token: CheckToken = _refuse
    vet: Callable[[Job], None] = _accept
    defaults: JobDefaults = field(default_factory=JobDefaults)
    access: Access = field(default_factory=Access)
    identify: Identify = anybody
    v2_enabled: bool = True
    leader_key: str = "scheduler-leader"
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    telemetry: Telemetry = field(default_factory=Silence)
    scrape: Callable[[], Awaitable[bytes]] = _nothing_measured  # the text of /metrics


class Services:
    def __init__(self, given: ApiServices) -> None:
        self.clock = given.clock
        self.defaults = given.defaults
        self.v2_enabled = given.v2_enabled
        self.scrape = given.scrape
        self.jobs = Jobs(given.db, given.clock, vet=given.vet)
        self.executions = Executions(
            given.db, given.clock, check_token=given.check_token, telemetry=given.telemetry
        )
        self.breakers = Breakers(given.db, given.clock, given.breaker)
        self.system = System(given.db, given.clock, given.status, given.leader_key)
        self.instances = Instances(given.db, given.clock, given.leader_key)
        self.engines = Engines(given.db, given.clock)


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Ask = Annotated[Services, Depends(_services)]


def v2_is_on(ask: Ask) -> None:
    if not ask.v2_enabled:
        raise Unavailable("version 2 is switched off here; set SCHEDULER_V2_ENABLED=true")
