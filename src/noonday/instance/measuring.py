"""What a scrape of this instance shows: the engine's own figures and a look at its database."""

from __future__ import annotations

from functools import partial

from noonday.engine.engine import Role
from noonday.instance.parts import Parts, own_version
from noonday.store.backlog import Backlog, backlog
from noonday.telemetry.metrics import Standing
from noonday.telemetry.scraping import Scrape


def scrape_of(parts: Parts) -> Scrape:
    async def look() -> Backlog:
        return await parts.db.read(partial(backlog, now=parts.clock.now()))

    parts.metrics.watch(partial(_standing, parts))
    return Scrape(parts.metrics, look, parts.clock)


def _standing(parts: Parts) -> Standing:
    engine = parts.engine
    counters, roles = engine.counters, engine.config.roles
    return Standing(
        version=own_version(),
        slots=engine.slots.size if Role.WORKER in roles else 0,
        busy=engine.slots.busy,
        leads=Role.SCHEDULER in roles and engine.elector.leading,
        term=engine.elector.term,
        streaming=engine.streaming,
        recovered=counters.recovered,
        refused=counters.refused,
        abandoned=counters.abandoned,
        set_aside=counters.set_aside,
    )
