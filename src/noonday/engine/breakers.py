"""Circuit breakers in motion: one view of the shared table, asked before a call and told after it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from noonday.clock import Clock
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.job import Job
from noonday.domain.outcome import Outcome
from noonday.engine.loop import Actor, Wish
from noonday.ports import Claim, Telemetry
from noonday.store.database import Database
from noonday.store.notices import BREAKERS


class Breakers(Actor):
    """Keeps the breakers that are not closed in memory, read anew when a notice tells of a change."""

    name = "breakers"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        telemetry: Telemetry,
        domain_of: Callable[[Job], str | None],  # None: nothing stands between the job and its target
        policy: BreakerPolicy,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(BREAKERS))

    @property
    def state(self) -> str:
        """The worst of all: open, half_open or closed."""
        return "closed"

    async def before(self, claim: Claim) -> Outcome | None:
        """None = call it. Otherwise the outcome that parks the run until the breaker may let it through."""
        return None

    async def after(self, claim: Claim, outcome: Outcome) -> None:
        """What the call taught; costs nothing while all is well."""

    async def run_once(self) -> Wish:
        return timedelta(minutes=1)
