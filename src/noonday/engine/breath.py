"""Who has the interpreter: threads of the database while much waits, the event loop when a moment comes."""

from __future__ import annotations

import sys
import time
from typing import Final, Protocol

_STARTS: Final = 4
_PAUSE: Final = 0.00002  # seconds; the system makes some more of it, enough for a thread to wake up
_HASTE, _LEISURE = 0.0005, 0.005  # seconds; the second is the interpreter's own


class Beside(Protocol):
    """Threads of the database beside the event loop."""

    brought: bool  # something that the event loop has not come to

    def waiting(self) -> bool:
        """Does one of them wait for the interpreter?"""
        ...


class Breath:
    """A loop with much to do lets go of the interpreter in every round and has it back before a thread that
    waits for it is awake; nor does that thread ever wait long enough to be given it. So claims and ends would
    be written only when nothing is left to run, and the database would rest meanwhile.
    """

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._starts = 0

    @property
    def expected(self) -> bool:
        """Should the loop come round soon, for somebody could go on?"""
        return self._beside.brought

    def draw(self) -> None:
        """After each of many small steps."""
        self._starts += 1
        if self._starts >= _STARTS:
            self._starts = 0
            if self._beside.waiting():
                time.sleep(_PAUSE)


def hasten(near: bool) -> None:
    """While runs wait for their moment, a thread that computes is asked for the interpreter ten times as
    soon: the moment might find it taken, and wait. With a backlog that would only cost changes of hands.
    """
    sys.setswitchinterval(_HASTE if near else _LEISURE)
