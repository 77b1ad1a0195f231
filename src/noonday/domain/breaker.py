"""A circuit breaker as a value: may a target domain be called now? An open one delays, and loses nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  # one probe at a time finds out whether the target is back


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    threshold: int = 5  # failures in a row
    open_for: timedelta = timedelta(seconds=60)
    probe_lease: timedelta = timedelta(seconds=60)  # a probe silent for so long is taken as dead


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0  # in a row
    opened_at: datetime | None = None  # set while not closed
    probe_until: datetime | None = None  # set while half open; names the probe too


CLOSED = Breaker()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The end of a probe; `ok` is None when it was stopped before the target showed how it fares."""

    until: datetime  # of its lease
    ok: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the calls to one domain taught, in short."""

    ok: bool = False  # a call was answered
    failures: int = 0  # of calls after the last one that was answered
    error: str | None = None  # of the newest failure
    probe: Probe | None = None

    def then(self, later: Heard) -> Heard:
        return Heard(
            ok=self.ok or later.ok,
            failures=later.failures if later.ok else self.failures + later.failures,
            error=later.error or self.error,
            probe=later.probe or self.probe,
        )


def allow(breaker: Breaker, policy: BreakerPolicy, now: datetime) -> tuple[Breaker, bool, datetime | None]:
    """The breaker afterwards, whether the call may go out, and if not, when to ask again.

    A call that may go out of a breaker that is not closed is the probe, and holds it for `probe_lease`: the
    caller stores the new breaker by compare-and-set before it calls, so that there is one probe.
    """
    match breaker.state:
        case BreakerState.CLOSED:
            return breaker, True, None
        case BreakerState.OPEN:
            until = _set(breaker.opened_at) + policy.open_for
        case BreakerState.HALF_OPEN:
            until = _set(breaker.probe_until)
        case _:
            assert_never(breaker.state)
    if now < until:
        return breaker, False, until
    probing = replace(breaker, state=BreakerState.HALF_OPEN, probe_until=now + policy.probe_lease)
    return probing, True, None


def record(breaker: Breaker, policy: BreakerPolicy, ok: bool, now: datetime) -> Breaker:
    """The breaker after a call that was no probe was answered, or was not.

    What arrives while it is not closed belongs to calls sent before it opened: that tells nothing new, and
    must neither close it without a probe nor keep it open for longer.
    """
    if breaker.state is not BreakerState.CLOSED:
        return breaker
    if ok:
        return CLOSED
    failures = breaker.failures + 1
    if failures >= policy.threshold:
        return Breaker(state=BreakerState.OPEN, failures=failures, opened_at=now)
    return Breaker(failures=failures)


def probed(breaker: Breaker, probe: Probe, now: datetime) -> Breaker:
    """The breaker after a probe ended; one whose place another has taken decides nothing."""
    if breaker.state is not BreakerState.HALF_OPEN or breaker.probe_until != probe.until:
        return breaker
    if probe.ok:
        return CLOSED
    failures = breaker.failures + (probe.ok is False)
    # Without a verdict it is open as before, and the next one may probe at once.
    opened_at = breaker.opened_at if probe.ok is None else now
    return Breaker(state=BreakerState.OPEN, failures=failures, opened_at=opened_at)


def hear(breaker: Breaker, policy: BreakerPolicy, heard: Heard, now: datetime) -> Breaker:
    """The breaker after all of that."""
    if heard.probe is not None:
        return probed(breaker, heard.probe, now)
    if heard.ok:
        breaker = record(breaker, policy, True, now)
    for _ in range(min(heard.failures, policy.threshold)):
        breaker = record(breaker, policy, False, now)
    return breaker


def whose(domain: str) -> str:
    """How each sentence about a run that waits for this breaker begins."""
    return f"the circuit breaker of {domain} is "


def why_not(domain: str, breaker: Breaker, until: datetime) -> str:
    what = "open" if breaker.state is BreakerState.OPEN else "being probed"
    return f"{whose(domain)}{what}; asked again at {until:%H:%M:%S} UTC or when it closes"


def worst(states: set[BreakerState]) -> BreakerState:
    for state in (BreakerState.OPEN, BreakerState.HALF_OPEN):
        if state in states:
            return state
    return BreakerState.CLOSED


def _set(instant: datetime | None) -> datetime:
    assert instant is not None, "a breaker that is not closed knows since when"
    return instant
