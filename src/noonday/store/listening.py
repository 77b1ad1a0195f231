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
BEAT = 1.0  # SQLite: seconds between looks
LONGEST_PAUSE = 10.0

Wake = Callable[[frozenset[str]], None]
log = structlog.get_logger(__name__)


def payload(origin: str, topics: frozenset[str]) -> str:
    return f"{origin} {' '.join(sorted(topics))}"


def topics_of(message: str, me: str) -> frozenset[str]:
    """Nothing for what we said ourselves; everything for a message that somebody wrote by hand."""
    origin, *topics = message.split()
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


async def hear_postgres(url: URL, me: str, wake: Wake) -> None:
    pause = 0.1
    while True:
        try:
            conn = await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True)
        except psycopg.Error as exc:
            log.warning("cannot listen to the database", error=str(exc), action="listen")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            continue
        async with conn:
            pause = 0.1
            await _hear(conn, me, wake)


async def _hear(conn: psycopg.AsyncConnection[tuple[object, ...]], me: str, wake: Wake) -> None:
    try:
        await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        wake(ALL)  # whatever was said while nobody listened
        async for notice in conn.notifies():
            if topics := topics_of(notice.payload or "someone", me):
                wake(topics)
    except psycopg.Error as exc:
        log.warning("lost the ear to the database", error=str(exc), action="listen")


def conninfo(url: URL) -> str:
    """The URL as libpq reads it; what it does not say itself is filled in."""
    settings = {**KEEP_ALIVE, **url.query, "application_name": "noonday-ear"}
    return url.set(drivername="postgresql", query=settings).render_as_string(hide_password=False)
