"""Where claims and ends of this instance meet at the same jobs, a claim takes along what has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.doubts import Doubts
from noonday.engine.settler import Settler
from noonday.ports import Claim
from noonday.store.executions import Ahead, ClaimOrder, Ends

T = TypeVar("T")
_LATELY: Final = 1.0  # seconds
Settle = Callable[..., Ends]  # (connection, beside=what goes on meanwhile)


class Meetings:
    """A claim passes by the jobs that an end is being written for. Where it found nothing else it would only
    come again and again: there both are one transaction. Where jobs are many they go beside each other, for
    a claim had better not wait.
    """

    def __init__(self, *, clock: Clock, doubts: Doubts, settler: Settler) -> None:
        self._clock = clock
        self._doubts = doubts
        self._settler = settler
        self._until = float("-inf")
        self._behind_until = float("-inf")  # till then claims are made behind the ends that they take along
        self._ended: frozenset[str] = frozenset()  # jobs of which the newest claim has taken ends along

    def noted(self) -> None:
        """A claim found nothing but what is held elsewhere."""
        self._until = self._clock.monotonic() + _LATELY

    def looked_at(self, claims: Iterable[Claim]) -> None:
        """Would it have met with the ends that it took along?"""
        if self._ended and any(claim.job.id in self._ended for claim in claims):
            self.noted()

    async def claim(
        self, order: ClaimOrder, work: Callable[[Connection], T], ahead: Callable[[Connection], Ahead[T]]
    ) -> T:
        """By `work`, or by `ahead` if it takes ends along and their being written need not be waited for."""
        self._ended = frozenset()
        if self._clock.monotonic() >= self._until:
            return await self._doubts.claim(order, work)
        carried = self._settler.lend()
        if not carried:
            return await self._doubts.claim(order, work, serially=True)
        behind = self._clock.monotonic() < self._behind_until
        both = partial(self._both, self._settler.work(carried), work, None if behind else ahead)
        try:
            ends, made = await self._doubts.claim(order, both, serially=True)
        except BaseException:
            self._settler.take_back(carried)
            raise
        told = (one.ending.claim for one in carried)
        self._ended = frozenset(claim.job.id for claim in told if claim is not None)
        self._settler.carried(carried, ends)
        return made

    def _both(
        self,
        settle: Settle,
        work: Callable[[Connection], T],
        ahead: Callable[[Connection], Ahead[T]] | None,
        conn: Connection,
    ) -> tuple[Ends, T]:
        if ahead is None:
            return settle(conn), work(conn)
        beside = ahead(conn)
        ends, made = settle(conn, beside=beside), beside.claims()
        if made is None:
            self._behind_until = self._clock.monotonic() + _LATELY
            made = work(conn)
        return ends, made
