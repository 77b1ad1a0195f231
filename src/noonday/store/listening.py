"""Ears for what other processes commit: the file's data version on SQLite, or a beat; see also `hearing`."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

import structlog

from noonday.store.notices import TOPICS

ALL = frozenset(TOPICS)
BEAT = 1.0  # seconds between looks where nobody tells: SQLite's file, and PostgreSQL behind a pooler
SLOW_BEAT = 5.0

Wake = Callable[[frozenset[str]], None]
log = structlog.get_logger(__name__)


def payload(origin: str, topics: frozenset[str]) -> str:
    return f"{origin} {' '.join(sorted(topics))}"


def topics_of(message: str, me: str) -> frozenset[str]:
    """Nothing for what we said ourselves; everything for a message that somebody wrote by hand."""
    origin, *topics = message.split() or [""]
    if origin == me:
        return frozenset()
    return ALL.intersection(topics) or ALL


async def watch_sqlite(data_version: Callable[[], Awaitable[int]], wake: Wake) -> None:
    seen: int | None = None
    while True:
        try:
            version = await data_version()
        except sqlite3.Error as exc:
            log.warning("cannot look at the database file", error=str(exc), action="listen")
            version = None
        if seen is not None and version != seen:
            wake(ALL)
        seen = version
        await asyncio.sleep(BEAT)


async def suppose(wake: Wake, relayed: Callable[[], bool]) -> None:
    """Behind a pooler that shares sessions nobody can listen: everybody looks again at each beat.

    Where notices come another way too, the beat is only for those that get lost.
    """
    while True:
        await asyncio.sleep(SLOW_BEAT if relayed() else BEAT)
        wake(ALL)
