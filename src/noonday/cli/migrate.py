"""`noonday migrate`: the schema of the database, up and down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic.util import CommandError
from cyclopts import App

from noonday.cli import output, tables
from noonday.cli.asking import confirmed
from noonday.cli.database import described, exists, reached
from noonday.cli.errors import INTERRUPTED
from noonday.cli.flags import Db, Json, Yes
from noonday.domain.errors import invalid
from noonday.settings import load
from noonday.store import migrate

__all__ = ["app"]

app = App(name="migrate", help_epilogue="")


@app.default
def up(
    *,
    to: str = "head",
    status: bool = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Bring the database to the schema of this version; makes it if there is none.

    Parameters
    ----------
    to:
        A revision to stop at.
    status:
        Only say where the database stands and what is missing.
    """
    url = load(database_url=database_url).database_url
    if status:
        _status(url, json=json)
        return
    with reached(url), _known(to):
        missing = migrate.pending(url)
        migrate.upgrade(url, to)
        at, left = migrate.current(url), migrate.pending(url)
    if json:
        output.data({"revision": at, "applied": [step for step in missing if step not in left]})
    elif missing:
        output.say(f"{described(url)} is now at {at}")
    else:
        output.say(f"{described(url)} is up to date at {at}")


app.command(up, name="up")


@app.command
def down(*, to: str = "-1", yes: Yes = False, database_url: Db = None) -> int:
    """Take schema changes back, the last one by default. What only the newer schema can hold is lost.

    Parameters
    ----------
    to:
        A revision to go back to, -1 for one step, base for nothing at all.
    """
    url = load(database_url=database_url).database_url
    exists(url)
    if not confirmed(f"Take {described(url)} back to {to}? Data may be lost.", yes=yes):
        return INTERRUPTED
    with reached(url), _known(to):
        migrate.downgrade(url, to)
        output.say(f"{described(url)} is now at {migrate.current(url) or 'base'}")
    return 0


@contextmanager
def _known(revision: str) -> Iterator[None]:
    try:
        yield
    except CommandError as exc:
        raise invalid("--to", revision, f"is no revision to go to: {exc}") from exc


def _status(url: str, *, json: bool) -> None:
    exists(url)
    with reached(url):
        at, missing = migrate.current(url), migrate.pending(url)
    if json:
        output.data({"revision": at, "missing": missing})
        return
    tables.pairs(
        [
            ("database", described(url)),
            ("revision", at or "none"),
            ("missing", ", ".join(missing) or "nothing"),
        ]
    )
