"""How far ahead a worker may claim: of its free slots, and of the moment at which a run is due."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_SOON = 0.1  # seconds
_START = 1.0


class Pace:
    """Learns from the runs how fast slots become free. Slow runs are believed at once, fast ones in time."""

    def __init__(self, *, slots: int, most: int) -> None:
        self._slots = slots
        self._most = most
        self._average = _START
        self._known = False
        self._eager = True  # as long as nothing is known: a backlog may wait for what the first runs tell

    def ran(self, seconds: float) -> None:
        self._known = True
        weight = 0.5 if self._eager or seconds > self._average else 0.3
        self._average += (seconds - self._average) * weight
        if self._eager:
            self._eager = seconds <= _SOON / 2 and self.ahead < self._most

    def disappoint(self) -> None:
        """No slot became free as expected: begin to learn anew."""
        self._average, self._eager = _START, False

    @property
    def ahead(self) -> int:
        """Claims that may wait for a slot: none while runs take longer than the round trip of a claim."""
        if self._average > _SOON / 2:
            return 0
        return min(2 * self._most, int(self._slots * _SOON / max(self._average, 0.001)))

    @property
    def may_be_fast(self) -> bool:
        """As far as anybody knows: so that as much as one claim brings starts within a blink."""
        return not self._known or self.ahead >= self._most


_SHORTEST: Final = 0.01  # seconds
_HALF_LIFE: Final = 5.0  # seconds


class Lead:
    """Learns how long a claim may take. It is made so long before the moment that the moment costs a
    dispatch, and no longer: what is claimed counts as running. A database that stood still does so again, for
    its disk is busy, or its machine.
    """

    def __init__(self, longest: timedelta) -> None:
        self._longest = longest.total_seconds()
        self._claim = 0.0
        self._learnt_at = 0.0

    def took(self, seconds: float, now: float) -> None:
        """A long claim is believed at once, and forgotten in time; `now`: of the monotonic clock."""
        faded = self._claim * 0.5 ** ((now - self._learnt_at) / _HALF_LIFE)
        self._claim, self._learnt_at = max(seconds, faded), now

    @property
    def claim(self) -> float:
        """How long one may take, in seconds."""
        return self._claim

    @property
    def span(self) -> timedelta:
        """What is due within it may be claimed."""
        wanted = max(self._claim * 4, _SHORTEST)
        return timedelta(seconds=min(wanted, self._longest))

    @property
    def wake(self) -> timedelta:
        """So long before the next moment it is time to claim; what comes close behind it comes along."""
        return self.span / 2
