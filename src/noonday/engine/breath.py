"""Pauses of the event loop, too short to be seen: the threads of the database get the interpreter."""

from __future__ import annotations

import time
from typing import Final

_STARTS: Final = 16
_PAUSE: Final = 0.00002  # seconds; the system makes some more of it, enough for a thread to wake up


class Breath:
    """A loop with much to do lets go of the interpreter in every round and has it back before a thread that
    waits for it is awake; nor does that thread ever wait long enough to be given it. So claims and ends would
    be written only when nothing is left to run, and the database would rest meanwhile.
    """

    def __init__(self) -> None:
        self._starts = 0

    def draw(self) -> None:
        """After each start while more wait."""
        self._starts += 1
        if self._starts >= _STARTS:
            self._starts = 0
            time.sleep(_PAUSE)
