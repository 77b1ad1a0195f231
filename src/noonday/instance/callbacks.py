"""Where targets reach the scheduler with their callbacks: its own address, or that of an API beside it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import structlog

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.settings import Settings, is_loopback
from noonday.store import instances
from noonday.store.database import Database
from noonday.store.instances import SILENT_AFTER, Instance

log = structlog.get_logger(__name__)

_EVERY = timedelta(seconds=10)


def own_url(settings: Settings, port: int) -> str:
    """How others reach the API of this instance."""
    return settings.model_copy(update={"port": port}).base_url


class Callbacks(Actor):
    """Of a worker without an API and without PUBLIC_URL: looks for a living instance that has one.

    What was found is kept until something better is found, for a run may be on its way that was told of it.
    """

    name = "callbacks"

    def __init__(self, *, db: Database, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.url: str | None = None
        self._db = db
        self._said = False

    async def run_once(self) -> Wish:
        since = self.clock.now() - SILENT_AFTER
        found = reachable(await self._db.read(partial(instances.everyone, alive_since=since)))
        if found and self.url not in found:
            self.url = found[0]
            log.info("callbacks go to %s", self.url, action="callbacks", url=self.url)
        elif self.url is None and not self._said:
            log.warning(
                "PUBLIC_URL is not set and no instance with the API can be reached: "
                "targets are offered no callback until there is one",
                action="callbacks",
            )
        self._said = True
        return _EVERY


def reachable(living: Iterable[Instance]) -> list[str]:
    """Addresses of APIs that a target may be told: a loopback address means something on its host alone."""
    here = socket.gethostname()
    return [
        one.url
        for one in living
        if one.url and (one.host == here or not is_loopback(urlsplit(one.url).hostname or ""))
    ]
