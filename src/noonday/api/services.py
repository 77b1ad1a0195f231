"""What the routes work with, put together by the instance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request

from noonday.api.door.credentials import Identify, anybody
from noonday.api.door.guard import Access
from noonday.api.door.guesses import Guesses
from noonday.api.events import Hub
from noonday.api.schemas import JobDefaults
from noonday.clock import Clock
from noonday.control.audit import Audit
from noonday.control.breakers import Breakers
from noonday.control.bulk import Bulk
from noonday.control.calendars import Calendars
from noonday.control.ends import Ends
from noonday.control.engines import Engines
from noonday.control.executions import CheckToken, Executions
from noonday.control.forecast import Forecasts
from noonday.control.insights import Insights
from noonday.control.instances import Instances
from noonday.control.jobs import Jobs
from noonday.control.keys import Keys
from noonday.control.listing import Listing
from noonday.control.loads import Loads
from noonday.control.outputs import Outputs
from noonday.control.overview import Overview
from noonday.control.owners import Owners
from noonday.control.rebalance import Rebalancing
from noonday.control.registry import Registry
from noonday.control.replays import Answers
from noonday.control.schedulers import Schedulers
from noonday.control.services import ServiceUrls
from noonday.control.sessions import Sessions
from noonday.control.statistics import Statistics
from noonday.control.system import LocalStatus, System
from noonday.control.timeline import Timelines
from noonday.control.triggers import Triggers
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.errors import Unavailable
from noonday.domain.job import Job
from noonday.domain.rates import Rate
from noonday.domain.signatures import Secret
from noonday.ports import Silence, Telemetry
from noonday.settings.sources import Source
from noonday.store.database import Database

__all__ = ["ApiServices", "Ask", "Services", "v2_is_on"]


def _refuse(*_: object) -> bool:
    return False


def _accept(_: Job) -> None:
    pass


def _accept_url(_: str) -> None:
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
    vet_url: Callable[[str], None] = _accept_url  # of a service
    service_urls: Mapping[str, str] = field(default_factory=dict)  # by the settings
    replace_existing: bool = True  # whether a job that is registered again follows its declaration
    defaults: JobDefaults = field(default_factory=JobDefaults)
    access: Access = field(default_factory=Access)
    identify: Identify = anybody
    keys: Keys | None = None  # those that `identify` knows; made here if there are none
    settings: Callable[[], Sequence[Source]] = tuple  # those in force, without their secrets
    trigger_rate: Rate | None = None
    webhook_secrets: tuple[Secret, ...] = ()  # with one, webhook calls must be signed
    pubsub_enabled: bool = False
    answers_kept: timedelta = timedelta(hours=24)  # those to an Idempotency-Key
    v2_enabled: bool = True
    leader_key: str = "scheduler-leader"
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    telemetry: Telemetry = field(default_factory=Silence)
    scrape: Callable[[], Awaitable[bytes]] = _nothing_measured  # the text of /metrics
    events_kept: int = 10_000  # with 0, nobody can listen to them


class Services:
    def __init__(self, given: ApiServices) -> None:
        self._keep(given)
        self.jobs = Jobs(given.db, given.clock, vet=given.vet)
        self.bulk = Bulk(given.db, given.clock, self.jobs)
        self.listing = Listing(given.db)
        self.executions = Executions(
            given.db, given.clock, check_token=given.check_token, telemetry=given.telemetry
        )
        self.outputs = Outputs(given.db)
        self.ends = Ends(given.db)
        self.audit = Audit(given.db, self.jobs)
        self.events = Hub(given.db, given.clock, keep=given.events_kept)
        self.answers = Answers(given.db, given.clock, keep=given.answers_kept)
        self.breakers = Breakers(given.db, given.clock, given.breaker)
        self.registry = Registry(given.db, given.clock, self.jobs, replace_existing=given.replace_existing)
        self.schedulers = Schedulers(given.db, given.clock, self.jobs)
        self.service_urls = ServiceUrls(given.db, given.clock, given.service_urls, vet=given.vet_url)
        self.system = System(given.db, given.clock, given.status, given.leader_key)
        self.instances = Instances(given.db, given.clock, given.leader_key)
        self.overview = Overview(given.db, given.clock, self.instances)
        self.engines = Engines(given.db, given.clock)
        self.statistics = Statistics(given.db, given.clock)
        self.insights = Insights(given.db, given.clock, self.statistics)
        self.forecasts = Forecasts(given.db, given.clock)
        self.rebalancing = Rebalancing(given.db, given.clock, self.jobs)
        self.timelines = Timelines(given.db, given.clock)
        self.loads = Loads(given.db, given.clock)
        self.calendars = Calendars(given.db, given.clock, self.loads)
        self.owners = Owners(given.db)
        self.keys = given.keys or Keys(given.db, given.clock)
        self.sessions = Sessions(given.db, given.clock)
        self.triggers = Triggers(given.db, given.clock, self.jobs, given.telemetry)

    def _keep(self, given: ApiServices) -> None:
        self.clock = given.clock
        self.origins = given.access.origins
        self.defaults = given.defaults
        self.v2_enabled = given.v2_enabled
        self.webhook_secrets = given.webhook_secrets
        self.pubsub_enabled = given.pubsub_enabled
        self.scrape = given.scrape
        self.identify = given.identify
        self.guesses = Guesses(given.identify, given.clock)
        self.settings = given.settings

    def close(self) -> None:
        """Answer everybody who still waits: the server is about to end."""
        self.ends.close()
        self.events.close()


async def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Ask = Annotated[Services, Depends(_services)]


async def v2_is_on(ask: Ask) -> None:
    if not ask.v2_enabled:
        raise Unavailable("version 2 is switched off here; set SCHEDULER_V2_ENABLED=true")
