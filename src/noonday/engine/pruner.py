"""Forgets old history in small batches: at the start and then every hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish
from noonday.store import pruning
from noonday.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunerConfig:
    keep_runs: int = 100
    keep_days: int = 30
    every: timedelta = timedelta(hours=1)
    batch: int = 500  # executions in one transaction
    jobs: int = 100  # that one transaction looks at
    windows: int = 20  # of jobs that one pass looks at; of very many jobs the next ones come after a pause
    pause: timedelta = timedelta(minutes=5)


class Pruner(Actor):
    """Looks for what is too much by reading alone: on SQLite all others who write would wait meanwhile."""

    name = "pruner"
    head_start = 3.0

    def __init__(self, *, db: Database, clock: Clock, counters: Counters, config: PrunerConfig) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._counters = counters
        self._config = config
        self._after: str | None = None  # where the walk over the jobs goes on

    async def run_once(self) -> Wish:
        while await self._write(partial(pruning.prune_removed, limit=self._config.batch)):
            pass
        for _ in range(self._config.windows):
            look = partial(pruning.overfull, after=self._after, runs=self._config.keep_runs)
            found, self._after = await self._db.read(look)
            for start in range(0, len(found), self._config.jobs):
                await self._prune(found[start : start + self._config.jobs])
            if self._after is None:
                return self._config.every
        return self._config.pause

    async def _prune(self, ids: Sequence[str]) -> None:
        config, full = self._config, True
        while full:
            full = await self._write(
                partial(
                    pruning.prune_jobs,
                    ids=ids,
                    now=self.clock.now(),
                    runs=config.keep_runs,
                    days=config.keep_days,
                    limit=config.batch,
                )
            )

    async def _write(self, prune: Callable[[Connection], int]) -> bool:
        """Is there more of it?"""
        gone = await self._db.write(prune)
        self._counters.pruned += gone
        return gone >= self._config.batch
