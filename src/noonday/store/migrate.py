"""Brings the tables up to date, also when several instances start at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

from sqlalchemy import Connection, inspect

from noonday.store import dialects
from noonday.store.engines import StoreOptions, make_engine, normalise_url

HEAD = "head"


def upgrade(db_url: str, target: str = HEAD) -> None:
    """Run the steps that are missing; whoever comes second waits and finds nothing to do."""
    if target == HEAD and current(db_url) == _steps()[-1]:
        return
    with _connected(db_url) as conn, dialects.of(conn).migration_lock(conn):
        from noonday.store import migrating  # noqa: PLC0415 - 7 MB that an instance rarely needs

        migrating.up(conn, target)
        conn.commit()


def downgrade(db_url: str, target: str = "base") -> None:
    with _connected(db_url) as conn, dialects.of(conn).migration_lock(conn):
        from noonday.store import migrating  # noqa: PLC0415 - as above

        migrating.down(conn, target)
        conn.commit()


def current(db_url: str) -> str | None:
    """The step this database is at; None = nothing there yet. Waits for nobody who is just migrating."""
    with _connected(db_url, reading=True) as conn:
        if not inspect(conn).has_table("alembic_version"):
            return None
        found: str | None = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return found


def pending(db_url: str) -> list[str]:
    """The steps that are missing, oldest first."""
    at, steps = current(db_url), _steps()
    if at is None:
        return steps
    if at in steps:
        return steps[steps.index(at) + 1 :]
    from noonday.store import migrating  # noqa: PLC0415 - as above

    return migrating.after(at)


def _steps() -> list[str]:
    """All there are, oldest first: the names of their files begin with them."""
    names = (file.name for file in (files("noonday.store") / "migrations" / "versions").iterdir())
    return sorted(name.partition("_")[0] for name in names if name[0].isdigit() and name.endswith(".py"))


@contextmanager
def _connected(db_url: str, *, reading: bool = False) -> Iterator[Connection]:
    # As if there were always a pooler in between: what works behind one works without it too.
    options = StoreOptions(transaction_pooling=True)
    engine = make_engine(normalise_url(db_url), options, reading=reading, pooled=False)
    try:
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()
