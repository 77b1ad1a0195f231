"""Ears for what other processes commit: LISTEN on PostgreSQL, the file's data version on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

import psycopg
import structlog
from psycopg import sql
from sqlalchemy import URL

from noonday.store.dialects import CHANNEL
from noonday.store.engines import KEEP_ALIVE
from noonday.store.notices import TOPICS

ALL = frozenset(TOPICS)
BEAT = 1.0  # seconds between looks where nobody tells: SQLite's file, and PostgreSQL behind a pooler
SLOW_BEAT = 5.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0

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


async def hear_postgres(url: URL, me: str, wake: Wake) -> None:
    pause, deaf = FIRST_PAUSE, False
    while True:
        try:
            conn = await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True)
            async with conn:
                await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
                if deaf:
                    log.info("listens to the database again", action="listen")
                pause, deaf = FIRST_PAUSE, False
                wake(ALL)  # whatever was said while nobody listened
                async for notice in conn.notifies():
                    if topics := topics_of(notice.payload or "someone", me):
                        wake(topics)
        except psycopg.Error as exc:
            if not deaf:
                log.warning("cannot listen to the database", error=first_words(exc), action="listen")
            deaf = True
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def first_words(exc: Exception) -> str:
    return str(exc).strip().split("\n", 1)[0]


def conninfo(url: URL) -> str:
    """The URL as libpq reads it; what it does not say itself is filled in."""
    settings = {**KEEP_ALIVE, **url.query, "application_name": "noonday-ear"}
    return url.set(drivername="postgresql", query=settings).render_as_string(hide_password=False)
