"""A circuit breaker as a value: may a target domain be called now? An open one delays, and loses nothing."""

from __future__ import annotations

from dataclasses import dataclass
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
    probe_until: datetime | None = None  # set while half open


CLOSED = Breaker()


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
    probing = Breaker(
        state=BreakerState.HALF_OPEN,
        failures=breaker.failures,
        opened_at=breaker.opened_at,
        probe_until=now + policy.probe_lease,
    )
    return probing, True, None


def record(breaker: Breaker, policy: BreakerPolicy, ok: bool, now: datetime) -> Breaker:
    """The breaker after a call was answered.

    Answers that arrive while it is open belong to calls sent before it opened: they tell nothing new, and
    must neither close it without a probe nor keep it open for longer.
    """
    if breaker.state is BreakerState.OPEN:
        return breaker
    if ok:
        return CLOSED
    failures = breaker.failures + 1
    if breaker.state is BreakerState.HALF_OPEN or failures >= policy.threshold:
        return Breaker(state=BreakerState.OPEN, failures=failures, opened_at=now)
    return Breaker(failures=failures)


def _set(instant: datetime | None) -> datetime:
    assert instant is not None, "a breaker that is not closed knows since when"
    return instant
