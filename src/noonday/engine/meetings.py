"""Whether claims and ends of this instance meet at the same jobs: then they go one after the other."""

from __future__ import annotations

from typing import Final

from noonday.clock import Clock

_LATELY: Final = 1.0  # seconds


class Meetings:
    """A claim passes by the jobs that an end is being written for. Where it found nothing else it would only
    come again and again; where jobs are many it had better not wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = float("-inf")

    def noted(self) -> None:
        self._until = self._clock.monotonic() + _LATELY

    @property
    def lately(self) -> bool:
        return self._clock.monotonic() < self._until
