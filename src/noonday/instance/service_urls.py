"""The stored services, at hand for every call: what is changed anywhere is known here in a moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from noonday.clock import Clock
from noonday.domain.services import find_url
from noonday.engine.loop import Actor, Wish
from noonday.store import services
from noonday.store.database import Database
from noonday.store.notices import SERVICES

__all__ = ["StoredServices"]

_EVERY = timedelta(seconds=10)  # where no notice comes through


class StoredServices(Actor):
    """While the database is away, what was known last goes."""

    name = "services"
    gap = 0.1

    def __init__(self, *, db: Database, clock: Clock) -> None:
        super().__init__(clock=clock, wake=db.subscribe(SERVICES))
        self._db = db
        self._urls: Mapping[str, str] = {}

    async def run_once(self) -> Wish:
        self._urls = await self._db.read(services.urls)
        return _EVERY

    def url_of(self, service: str) -> str | None:
        return find_url(self._urls, service)
