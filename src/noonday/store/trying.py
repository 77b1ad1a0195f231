"""What is tried again: passing troubles of a database, its outages, and commits of unknown outcome."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from noonday.domain.errors import Invalid, Problem, Unavailable

T = TypeVar("T")
TRIES = 4
FIRST_PAUSE = 0.05

log = structlog.get_logger(__name__)


class StoreDown(Unavailable):
    """The database is not available."""


class CommitUnknown(StoreDown):
    """The database went away while committing: the change may or may not have been made."""


class Reach:
    """Whether the database answers, said once when that changes, however many are waiting for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0

    @property
    def failures(self) -> int:
        """Since it answered for the last time."""
        return self._failures

    def failed(self, exc: StoreDown) -> None:
        with self._lock:
            self._failures += 1
            first = self._failures == 1
        if first:
            log.error("the database is away", action="store.away", error=str(exc).split("\n", 1)[0])

    def worked(self, before: int) -> None:
        """With so many failures when it began: what has begun before the last one says nothing of now."""
        if not before:
            return
        with self._lock:
            if self._failures != before:
                return
            self._failures = 0
        log.info("the database is back", action="store.back", failures=before)


def patiently(engine: Engine, act: Callable[[Connection], T], tries: int = TRIES) -> T:
    """Try again what failed for a passing reason and was rolled back for certain."""
    pause = FIRST_PAUSE
    for left in reversed(range(tries)):
        try:
            with engine.connect() as conn:
                return act(conn)
        except PoolTimeout as exc:
            raise Unavailable("no database connection became free") from exc
        except DataError as exc:
            raise Invalid(Problem("value", f"the database refuses it: {exc.orig}".strip())) from exc
        except DBAPIError as exc:
            if not _passing(exc):
                raise
            if not left:
                raise StoreDown(f"the database is not available: {exc.orig}".strip()) from exc
            time.sleep(pause)
            pause *= 2
    raise AssertionError("unreachable")


def finish(commit: Callable[[], None]) -> None:
    try:
        commit()
    except DBAPIError as exc:
        if exc.connection_invalidated or _state(exc).startswith(_VANISHING):
            raise CommitUnknown from exc
        raise


# SQLite: busy, locked, read-only, input/output error, disk full, cannot open
_SQLITE_PASSING = {5, 6, 8, 10, 13, 14}
# PostgreSQL: connection, resources (disk full), operator's doing (shutdown), system; and single states, of
# which 26000 is that somebody has discarded the statements that have names
_POSTGRES_PASSING = ("08", "53", "57", "58", "40001", "40P01", "55P03", "25006", "26000")
# Said while the server ends the session: a commit may have been made, and only its answer be missing.
_VANISHING = ("08", "57P")


def _passing(exc: DBAPIError) -> bool:
    """Is the reason outside of the statement: a lock, a lost or refused connection, a full disk?"""
    if exc.connection_invalidated or isinstance(exc, InterfaceError):
        return True
    if isinstance(exc.orig, sqlite3.Error):
        return getattr(exc.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_PASSING
    state = _state(exc)
    # Without a state the connection could not be made at all.
    return state.startswith(_POSTGRES_PASSING) if state else isinstance(exc, OperationalError)


def _state(exc: DBAPIError) -> str:
    return getattr(exc.orig, "sqlstate", None) or ""
