"""All operations by their tags. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from noonday.client.calling import Call
from noonday.client.operations.access import Access, AsyncAccess
from noonday.client.operations.admin import Admin, AsyncAdmin
from noonday.client.operations.audit import AsyncAudit, Audit
from noonday.client.operations.breakers import AsyncBreakers, Breakers
from noonday.client.operations.callbacks import AsyncCallbacks, Callbacks
from noonday.client.operations.executions import AsyncExecutions, Executions
from noonday.client.operations.health import AsyncHealth, Health
from noonday.client.operations.jobs import AsyncJobs, Jobs
from noonday.client.operations.registry import AsyncRegistry, Registry
from noonday.client.operations.scheduler import AsyncScheduler, Scheduler
from noonday.client.operations.schedules import AsyncSchedules, Schedules
from noonday.client.operations.services import AsyncServices, Services
from noonday.client.operations.statistics import AsyncStatistics, Statistics
from noonday.client.operations.triggers import AsyncTriggers, Triggers

__all__ = ["AsyncOperations", "Operations"]


class Operations:
    def __init__(self, send: Callable[[Call[Any]], Any]) -> None:
        self.access = Access(send)
        self.admin = Admin(send)
        self.audit = Audit(send)
        self.breakers = Breakers(send)
        self.callbacks = Callbacks(send)
        self.executions = Executions(send)
        self.health = Health(send)
        self.jobs = Jobs(send)
        self.registry = Registry(send)
        self.scheduler = Scheduler(send)
        self.schedules = Schedules(send)
        self.services = Services(send)
        self.statistics = Statistics(send)
        self.triggers = Triggers(send)


class AsyncOperations:
    def __init__(self, send: Callable[[Call[Any]], Coroutine[Any, Any, Any]]) -> None:
        self.access = AsyncAccess(send)
        self.admin = AsyncAdmin(send)
        self.audit = AsyncAudit(send)
        self.breakers = AsyncBreakers(send)
        self.callbacks = AsyncCallbacks(send)
        self.executions = AsyncExecutions(send)
        self.health = AsyncHealth(send)
        self.jobs = AsyncJobs(send)
        self.registry = AsyncRegistry(send)
        self.scheduler = AsyncScheduler(send)
        self.schedules = AsyncSchedules(send)
        self.services = AsyncServices(send)
        self.statistics = AsyncStatistics(send)
        self.triggers = AsyncTriggers(send)
