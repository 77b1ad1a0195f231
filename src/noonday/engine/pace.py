"""How far ahead of its free slots a worker may claim: only what will start within a blink."""

from __future__ import annotations

_SOON = 0.1  # seconds
_START = 1.0


class Pace:
    """Learns from the runs how fast slots become free. Slow runs are believed at once, fast ones in time."""

    def __init__(self, *, slots: int, most: int) -> None:
        self._slots = slots
        self._most = most
        self._average = _START

    def ran(self, seconds: float) -> None:
        weight = 0.5 if seconds > self._average else 0.05
        self._average += (seconds - self._average) * weight

    def disappoint(self) -> None:
        """No slot became free as expected: begin to learn anew."""
        self._average = _START

    @property
    def ahead(self) -> int:
        """Claims that may wait for a slot: none while runs take longer than the round trip of a claim."""
        if self._average > _SOON / 2:
            return 0
        return min(self._most, int(self._slots * _SOON / max(self._average, 0.001)))
