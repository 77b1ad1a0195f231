"""Circuit breakers in motion: one view of the shared table, asked before a call and told after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

import structlog

from noonday.clock import Clock
from noonday.domain.breaker import (
    CLOSED,
    Breaker,
    BreakerPolicy,
    BreakerState,
    Heard,
    Probe,
    allow,
    why_not,
    worst,
)
from noonday.domain.execution import ExecutionId
from noonday.domain.job import Job
from noonday.domain.outcome import Accepted, Completed, Deferred, Failed, Outcome, TimedOut
from noonday.engine.loop import Actor, Wish, first_line
from noonday.ports import Claim, Telemetry
from noonday.store import breakers as store
from noonday.store.database import Database
from noonday.store.notices import BREAKERS

log = structlog.get_logger(__name__)

_LOOK_AGAIN = timedelta(seconds=5)  # the view is never older, whatever became of the notices
_STEP = timedelta(milliseconds=2)


class Breakers(Actor):
    """Keeps the breakers that are not clean in memory, read anew when a notice tells of a change.

    What calls teach is gathered per domain and written together, so that a thousand failures in a second are
    a few transactions; while all is well nothing is written at all.
    """

    name = "breakers"
    gap = 0.05

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        telemetry: Telemetry,
        domain_of: Callable[[Job], str | None],  # None: nothing stands between the job and its target
        policy: BreakerPolicy,
    ) -> None:
        self._notices = db.subscribe(BREAKERS)
        super().__init__(clock=clock, wake=self._notices)
        self._db = db
        self._telemetry = telemetry
        self._domain_of = domain_of
        self._policy = policy
        self._seen = -1  # of the notices; nothing was read yet
        self._read_at = 0.0
        self._view: dict[str, Breaker] = {}
        self._heard: dict[str, Heard] = {}
        self._asking: dict[str, asyncio.Lock] = {}
        self._probes: dict[ExecutionId, datetime] = {}  # what goes out of here as a probe: its lease
        self._behind: dict[str, tuple[datetime, int]] = {}  # how many were sent back until when

    @property
    def state(self) -> str:
        """The worst of all: open, half_open or closed."""
        return worst({breaker.state for breaker in self._view.values()}).value

    @property
    def alert(self) -> bool:
        """Is any of them not clean, so that it must be asked before a call?"""
        return bool(self._view)

    async def before(self, claim: Claim) -> Deferred | None:
        """None = call it. Otherwise the outcome that parks the run until the breaker may let it through."""
        domain = self._domain_of(claim.job) if self._view else None
        if domain is None or domain not in self._view:
            return None
        until = self._closed_until(domain)
        if until is None and self._view[domain].state is not BreakerState.CLOSED:
            # One asks for all that are here: the others then know its answer.
            async with self._asking.setdefault(domain, asyncio.Lock()):
                until = self._closed_until(domain) or await self._probe(domain, claim)
        if until is None:
            return None
        breaker = self._view.get(domain, CLOSED)
        return Deferred(
            domain=domain, until=self._in_line(domain, until), detail=why_not(domain, breaker, until)
        )

    def after(self, claim: Claim, outcome: Outcome | None) -> None:
        """What the call taught; costs nothing while all is well."""
        if type(outcome) is Completed and not self._view and not self._heard and not self._probes:
            return
        probe_until = self._probes.pop(claim.execution.id, None)
        ok = _lives(outcome)
        if ok is None and probe_until is None:
            return
        domain = self._domain_of(claim.job)
        if domain is None:
            return
        seen = self._view.get(domain)
        if probe_until is not None:
            heard = Heard(error=_error(outcome), probe=Probe(until=probe_until, ok=ok))
        elif ok is False and (seen is None or seen.state is BreakerState.CLOSED):
            heard = Heard(failures=1, error=_error(outcome))
        elif ok and (domain in self._heard or (seen is not None and seen.state is BreakerState.CLOSED)):
            heard = Heard(ok=True)
        else:
            return  # nothing new: all is well, or it was sent before the breaker opened
        self._keep(domain, heard)
        self.wake.set()

    async def run_once(self) -> Wish:
        if self._heard:
            await self._tell()
        old = self.clock.monotonic() - self._read_at >= _LOOK_AGAIN.total_seconds()
        if old or self._seen != self._notices.told:
            await self.look()
        return _LOOK_AGAIN

    async def look(self) -> None:
        """Read the shared breakers anew."""
        told = self._notices.told
        found = await self._db.read(store.not_clean)
        self._seen, self._read_at = told, self.clock.monotonic()
        self._see(found)

    def _closed_until(self, domain: str) -> datetime | None:
        """Until when nothing may go out, as far as is known here."""
        breaker = self._view.get(domain, CLOSED)
        return allow(breaker, self._policy, self.clock.now())[2]

    async def _probe(self, domain: str, claim: Claim) -> datetime | None:
        """None = the call may go out, as the probe or because all is well again."""
        if domain not in self._view:
            return None
        now = self.clock.now()
        try:
            breaker, allowed, until = await self._db.write(
                partial(store.probe, domain=domain, policy=self._policy, now=now)
            )
        except Exception as exc:  # without the store nobody knows who probes
            log.warning(
                "no probe without the database",
                action="breaker.probe",
                domain=domain,
                error=first_line(exc),
            )
            return now + _LOOK_AGAIN
        self._see({**self._view, domain: breaker})
        if allowed and breaker.probe_until is not None:
            self._probes[claim.execution.id] = breaker.probe_until
        return until

    def _in_line(self, domain: str, until: datetime) -> datetime:
        """One after the other, so that a crowd that comes back does not keep other work from its turn."""
        last, count = self._behind.get(domain, (until, 0))
        count = count + 1 if last == until else 1
        self._behind[domain] = (until, count)
        return until + min((count - 1) * _STEP, self._policy.open_for / 2)

    def _keep(self, domain: str, heard: Heard) -> None:
        if domain in self._heard:
            self._heard[domain] = self._heard[domain].then(heard)
        elif len(self._heard) < store.MOST:
            self._heard[domain] = heard

    async def _tell(self) -> None:
        told, self._heard = self._heard, {}
        try:
            changes = await self._db.write(
                partial(store.hear, heard=told, policy=self._policy, now=self.clock.now())
            )
        except Exception:
            newer, self._heard = self._heard, told  # nothing is forgotten while the database is away
            for domain, heard in newer.items():
                self._keep(domain, heard)
            raise
        for change in changes.values():
            if change.moved:
                self._say(change)
        tripped = {domain for domain, change in changes.items() if change.tripped}
        self._see({**self._view, **{domain: c.after.breaker for domain, c in changes.items()}}, tripped)

    def _see(self, found: Mapping[str, Breaker], tripped: set[str] | frozenset[str] = frozenset()) -> None:
        before, self._view = self._view, {d: breaker for d, breaker in found.items() if breaker != CLOSED}
        for domain in before.keys() | self._view.keys():
            state = self._view.get(domain, CLOSED).state
            if state is not before.get(domain, CLOSED).state or domain in tripped:
                self._telemetry.breaker(domain, state, domain in tripped)
                self._behind.pop(domain, None)
        for domain in before.keys() - self._view.keys():
            self._asking.pop(domain, None)

    def _say(self, change: store.Change) -> None:
        """Each opening and each closing once; a probe that failed is nothing new."""
        where, state = change.after.domain, change.after.breaker.state
        if change.tripped:
            log.warning(
                "calls to a domain wait: its circuit breaker opened",
                action="breaker.open",
                domain=where,
                error=change.after.last_error,
            )
        elif state is BreakerState.CLOSED:
            log.info("a circuit breaker closed: who waited goes on", action="breaker.closed", domain=where)


def _lives(outcome: Outcome | None) -> bool | None:
    """Did the target answer? None = this attempt tells nothing of it."""
    match outcome:
        case Completed() | Accepted():
            return True
        case Failed():
            return None if outcome.down is None else not outcome.down
        case TimedOut():
            return False
        case _:
            return None


def _error(outcome: Outcome | None) -> str | None:
    match outcome:
        case Failed(down=True):
            return outcome.error
        case TimedOut():
            return f"took longer than {outcome.after.total_seconds():g} s"
        case _:
            return None
