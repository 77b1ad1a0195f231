"""Whose turn it is: high lanes first, with one slot in eight for the lower ones, so that none starves."""

from __future__ import annotations

from noonday.domain.job import Lane

_SHARE = 8
_LOW_FIRST = (Lane.LOW, Lane.NORMAL, Lane.HIGH)
_NORMAL_FIRST = (Lane.NORMAL, Lane.LOW, Lane.HIGH)


class Turns:
    """Counts what was served; after eight the lower lanes are owed one. Low and normal take turns at it."""

    def __init__(self) -> None:
        self._served = 0
        self._order = _NORMAL_FIRST

    def owed(self, limit: int) -> tuple[int, tuple[Lane, ...]]:
        """How many of the next `limit` go to the lower lanes, and in which order these are asked."""
        share = min(limit, self._served // _SHARE)
        if share:
            self._served -= share * _SHARE
            self._order = _NORMAL_FIRST if self._order is _LOW_FIRST else _LOW_FIRST
        return share, self._order

    def served(self, count: int) -> None:
        self._served += count
