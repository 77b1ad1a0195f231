"""A scrape: the metrics of this process with a fresh look at the database, which may be slow or away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from noonday.clock import Clock
from noonday.store.backlog import Backlog
from noonday.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_EVERY = 5.0  # seconds between two looks, however many scrape
_PATIENCE = 0.5  # seconds that a scrape waits for one


class Scrape:
    """Called by whoever answers `/metrics`. A look that takes long goes on, and serves a later scrape."""

    def __init__(
        self,
        metrics: Metrics,
        look: Callable[[], Awaitable[Backlog]],
        clock: Clock,
        *,
        every: float = _EVERY,
        patience: float = _PATIENCE,
    ) -> None:
        self._metrics = metrics
        self._look = look
        self._clock = clock
        self._every = every
        self._patience = patience
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def __call__(self) -> bytes:
        if self._looking is None and self._clock.monotonic() - self._looked_at >= self._every:
            self._looking = asyncio.create_task(self._refresh(), name="metrics")
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=self._patience)
            self._give_up_on_what_is_old()
        return await asyncio.to_thread(self._metrics.render)

    async def aclose(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def _refresh(self) -> None:
        try:
            self._metrics.saw(await self._look())
            self._looked_at = self._clock.monotonic()
        except Exception as exc:  # whatever it is, the other figures are worth having
            log.debug("no figures from the database", action="metrics", error=repr(exc))
            self._metrics.saw(None)
        finally:
            self._looking = None

    def _give_up_on_what_is_old(self) -> None:
        if self._looking is not None and self._clock.monotonic() - self._looked_at >= self._every * 3:
            self._metrics.saw(None)
