"""Electors under test: keepers of the lease that answer as told, and electors made with few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from noonday.clock import Clock
from noonday.domain.errors import RoadDown, Unavailable
from noonday.engine.elector import Elector
from noonday.ports import Leader, Leadership, Silence
from noonday.store.database import Database

TTL = timedelta(seconds=30)
KEY = "scheduler-leader"
REDIS_AWAY = RoadDown("Redis is away")
STORE_AWAY = Unavailable("the store is away")

Answer = int | bool | Exception | None


class Told:
    """Answers what it was told, the last answer again and again, and keeps what it was asked."""

    key = KEY

    def __init__(self, name: str, ttl: timedelta = TTL) -> None:
        self.name = name
        self.ttl = ttl
        self.elects: list[Answer] = [None]
        self.keeps: list[Answer] = [True]
        self.left = ttl
        self.asked: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def campaign(self) -> int | None:
        term = self._answer("campaign", self.elects)
        assert not isinstance(term, Exception)
        return term

    async def renew(self, term: int) -> bool:
        return bool(self._answer(f"renew {term}", self.keeps))

    async def resign(self, term: int) -> None:
        self._answer(f"resign {term}", [self.keeps[0]])

    async def leader(self) -> Leader | None:
        return Leader(holder="somebody", term=1, left=self.left)

    def _answer(self, question: str, answers: list[Answer]) -> Answer:
        self.asked.append(question)
        self.meanwhile()
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Campaigns(Silence):
    """Counts them."""

    def __init__(self) -> None:
        self.count = 0

    def campaigned(self) -> None:
        self.count += 1


def an_elector(
    db: Database, clock: Clock, *keepers: Leadership, name: str = "one", telemetry: Silence | None = None
) -> Elector:
    leadership: Sequence[Leadership] = keepers
    return Elector(
        db=db, clock=clock, leadership=leadership, telemetry=telemetry or Silence(), instance_id=name
    )
