"""Brings the tables up to date, also when several instances start at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from noonday.store import dialects
from noonday.store.engines import StoreOptions, make_engine, normalise_url

T = TypeVar("T")


def upgrade(db_url: str, target: str = "head") -> None:
    """Run the steps that are missing; whoever comes second waits and finds nothing to do."""
    _alone(db_url, lambda config: command.upgrade(config, target))


def downgrade(db_url: str, target: str = "base") -> None:
    _alone(db_url, lambda config: command.downgrade(config, target))


def current(db_url: str) -> str | None:
    """The step this database is at; None = nothing there yet."""
    with _connected(db_url) as conn:
        return MigrationContext.configure(conn).get_current_revision()


def pending(db_url: str) -> list[str]:
    """The steps that are missing, oldest first."""
    script = ScriptDirectory.from_config(_config())
    at = current(db_url)
    missing = [step.revision for step in script.iterate_revisions("head", at or "base")]
    return [revision for revision in reversed(missing) if revision != at]


def _alone(db_url: str, act: Callable[[Config], None]) -> None:
    with _connected(db_url) as conn, dialects.of(conn).migration_lock(conn):
        config = _config()
        config.attributes["connection"] = conn
        act(config)
        conn.commit()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("noonday.store") / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def _connected(db_url: str) -> Iterator[Connection]:
    # As if there were always a pooler in between: what works behind one works without it too.
    options = StoreOptions(transaction_pooling=True)
    engine = make_engine(normalise_url(db_url), options, pooled=False)
    try:
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()
