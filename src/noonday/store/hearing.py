"""LISTEN on PostgreSQL: what other processes commit is heard at once."""

from __future__ import annotations

import asyncio

import psycopg
import structlog
from psycopg import sql
from sqlalchemy import URL

from noonday.store.dialects import CHANNEL
from noonday.store.engines import KEEP_ALIVE
from noonday.store.listening import ALL, Wake, topics_of

__all__ = ["hear_postgres"]

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0

log = structlog.get_logger(__name__)


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
                await _hear(conn, me, wake)
        except psycopg.Error as exc:
            if not deaf:
                log.warning("cannot listen to the database", error=first_words(exc), action="listen")
            deaf = True
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _hear(conn: psycopg.AsyncConnection, me: str, wake: Wake) -> None:
    """The driver would look ten times a second whether anything came: here the socket says so."""
    while True:
        await _readable(conn.fileno())
        async for notice in conn.notifies(stop_after=1):
            if topics := topics_of(notice.payload or "someone", me):
                wake(topics)


async def _readable(fileno: int) -> None:
    loop = asyncio.get_running_loop()
    something = asyncio.Event()
    loop.add_reader(fileno, something.set)
    try:
        await something.wait()
    finally:
        loop.remove_reader(fileno)


def first_words(exc: Exception) -> str:
    return str(exc).strip().split("\n", 1)[0]


def conninfo(url: URL) -> str:
    """The URL as libpq reads it; what it does not say itself is filled in."""
    settings = {**KEEP_ALIVE, **url.query, "application_name": "noonday-ear"}
    return url.set(drivername="postgresql", query=settings).render_as_string(hide_password=False)
