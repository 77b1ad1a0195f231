"""Forgets old history in small batches: at the start and then every hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from noonday.clock import Clock
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish
from noonday.store import history
from noonday.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunerConfig:
    keep_runs: int = 100
    keep_days: int = 30
    every: timedelta = timedelta(hours=1)
    batch: int = 500


class Pruner(Actor):
    name = "pruner"

    def __init__(self, *, db: Database, clock: Clock, counters: Counters, config: PrunerConfig) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._counters = counters
        self._config = config

    async def run_once(self) -> Wish:
        config = self._config
        full = True
        while full:
            gone = await self._db.write(
                partial(
                    history.prune,
                    now=self.clock.now(),
                    runs=config.keep_runs,
                    days=config.keep_days,
                    limit=config.batch,
                )
            )
            self._counters.pruned += gone
            full = gone >= config.batch
        return config.every
