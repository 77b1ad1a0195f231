"""The database behind a command: named for people, and never made by a command that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from noonday.cli.errors import Hint
from noonday.cli.output import say
from noonday.domain.errors import Unavailable
from noonday.store import migrate
from noonday.store.engines import in_memory, normalise_url

__all__ = ["described", "exists", "reached", "ready"]


def described(url: str) -> str:
    """The database in one phrase, without its password."""
    made = normalise_url(url)
    if made.get_backend_name() == "sqlite":
        return f"SQLite {made.database or 'in memory'}"
    return f"PostgreSQL {made.database} on {made.host or 'the local socket'}"


def exists(url: str) -> None:
    """Raises where a SQLite file is not there: opening it would make an empty one."""
    made = normalise_url(url)
    if made.get_backend_name() == "sqlite" and not in_memory(made) and not Path(str(made.database)).exists():
        raise Hint(
            Unavailable(f"there is no database at {made.database} yet"),
            "noonday serve or noonday migrate makes it; --database-url or DATABASE_URL names another",
        )


@contextmanager
def reached(url: str) -> Iterator[None]:
    """What the driver says when the database cannot be used, as one line."""
    try:
        yield
    except DBAPIError as exc:
        reason = str(exc.orig).strip().splitlines()[0]
        raise Unavailable(f"{described(url)} cannot be used: {reason}") from exc
    except OSError as exc:  # the folder of a SQLite file
        raise Unavailable(f"{described(url)} cannot be used: {exc}") from exc


def ready(url: str, *, make: bool) -> None:
    """Raises unless the schema is that of this version; `make` fills a database that is absent or empty."""
    if not make:
        exists(url)
    with reached(url):
        missing = migrate.pending(url)
        if not missing:
            return
        if make and migrate.current(url) is None:
            say(f"making a new database: {described(url)}")
            migrate.upgrade(url)
            return
    raise Hint(
        Unavailable(f"{described(url)} has an older schema: {', '.join(missing)} missing"), "noonday migrate"
    )
