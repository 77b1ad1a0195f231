"""Claims that take ends along, worked out while the database writes these: what may start is asked for before
them, and the jobs of both are locked but once.

Only where it makes no difference to a claim whether they have ended: the runs of its jobs may overlap, and
nobody need be asked whether they start. Otherwise nothing is decided here, and it is claimed behind the ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Generic, TypeVar

from sqlalchemy import Connection

from noonday.domain.admission import most_at_once
from noonday.domain.execution import ExecutionId
from noonday.domain.job import Job
from noonday.ports import Claim
from noonday.store import dialects
from noonday.store.candidates import ClaimOrder, Heads, ask_due_among, ask_front, ask_heads, first_of, served
from noonday.store.claiming import Batch, Taken, taken
from noonday.store.execution_rows import Waiting
from noonday.store.reading import RowError, may_be_id
from noonday.store.settling import Beside
from noonday.store.shortcuts import Asked

__all__ = ["Ahead", "FrontAhead", "TheseAhead"]

T = TypeVar("T")


class Ahead(Beside, ABC, Generic[T]):
    """`claims` is asked for when the ends are settled."""

    def __init__(self, conn: Connection, order: ClaimOrder) -> None:
        self._conn = conn
        self._order = order
        self._until = order.now - order.overdue + order.lead
        self._jobs: dict[str, Job] = {}  # of which any number may run
        self._asked: Asked | None = None
        self._batch: Batch | None = None

    def locked(self, found: Mapping[str, Job | RowError]) -> None:
        jobs = {job_id: job for job_id, job in found.items() if isinstance(job, Job)}
        self._jobs = {job_id: job for job_id, job in jobs.items() if most_at_once(job) == inf}
        self._asked = self._look() if self._jobs else None
        if self._asked is not None:
            dialects.of(self._conn).dispatch(self._conn)

    def work(self) -> None:
        if self._asked is None:
            return
        batch = Batch(conn=self._conn, order=self._order)
        candidates = served(map(Waiting._make, self._asked.rows()))
        if candidates and batch.start_all(candidates, self._jobs):
            self._batch = batch

    def claims(self) -> T | None:
        """None if they must be looked for."""
        if self._batch is None:
            return None
        self._batch.write()
        return self._made(self._batch.claims)

    @abstractmethod
    def _look(self) -> Asked | None: ...

    @abstractmethod
    def _made(self, claims: list[Claim]) -> T: ...


class FrontAhead(Ahead[tuple[list[Claim], datetime | None]]):
    """As `claim_and_look_ahead`, where work waits in one place only."""

    _heads: Callable[[], Heads]

    def ask(self) -> None:
        self._heads = ask_heads(self._conn, self._order.roads)

    def _look(self) -> Asked | None:
        due = [front for front, at in self._heads().items() if at is not None and at <= self._until]
        return ask_front(self._conn, due[0], self._until, self._order.limit) if len(due) == 1 else None

    def _made(self, claims: list[Claim]) -> tuple[list[Claim], datetime | None]:
        if len(claims) == self._order.limit:
            return claims, self._order.now
        return claims, first_of(ask_heads(self._conn, self._order.roads)())


class TheseAhead(Ahead[Taken]):
    """As `claim_these`."""

    def __init__(self, conn: Connection, order: ClaimOrder, ids: Collection[ExecutionId]) -> None:
        super().__init__(conn, order)
        self._ids = ids
        self._wanted: Sequence[ExecutionId] = [one for one in ids if may_be_id(conn, one)]

    def _look(self) -> Asked | None:
        return ask_due_among(self._conn, self._wanted, self._until) if self._wanted else None

    def _made(self, claims: list[Claim]) -> Taken:
        return taken(self._conn, self._order, self._ids, claims)
