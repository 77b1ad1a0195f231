"""The steps of the tables themselves, run by Alembic; the caller holds the lock and commits."""

from __future__ import annotations

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

__all__ = ["after", "down", "up"]


def up(conn: Connection, target: str) -> None:
    command.upgrade(_config(conn), target)


def down(conn: Connection, target: str) -> None:
    command.downgrade(_config(conn), target)


def after(revision: str) -> list[str]:
    """The steps behind this one, oldest first; Alembic refuses one that it does not know."""
    script = ScriptDirectory.from_config(_config())
    steps = [step.revision for step in script.iterate_revisions("head", revision)]
    return [step for step in reversed(steps) if step != revision]


def _config(conn: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("noonday.store") / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config
