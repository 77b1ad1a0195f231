"""Pauses of the event loop, too short to be seen: the threads of the database get the interpreter."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_STARTS: Final = 4
_BLINDLY: Final = 16  # starts, where nobody knows
_PAUSE: Final = 0.00002  # seconds; the system makes some more of it, enough for a thread to wake up


class Breath:
    """A loop with much to do lets go of the interpreter in every round and has it back before a thread that
    waits for it is awake; nor does that thread ever wait long enough to be given it. So claims and ends would
    be written only when nothing is left to run, and the database would rest meanwhile.
    """

    def __init__(self, wanted: Callable[[], bool] | None) -> None:
        self._wanted = wanted  # does a thread wait for the interpreter?
        self._every = _STARTS if wanted else _BLINDLY
        self._starts = 0

    def draw(self) -> None:
        """After each start while more wait."""
        self._starts += 1
        if self._starts >= self._every:
            self._starts = 0
            if self._wanted is None or self._wanted():
                time.sleep(_PAUSE)
