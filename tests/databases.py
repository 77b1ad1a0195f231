"""A PostgreSQL database that many tests use one after the other: to empty it is cheap, to make one is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

MOST_USES: Final = 200  # then a new one: rows that were deleted still take up room
_TABLES: Final = (
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
)
_SHAPE: Final[LiteralString] = """
    SELECT (SELECT string_agg(c.relname || c.relkind::text || c.relnatts::text, ',' ORDER BY c.relname)
            FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace),
           (SELECT string_agg(adrelid::text || pg_get_expr(adbin, adrelid), ',' ORDER BY adrelid, adnum)
            FROM pg_attrdef),
           (SELECT string_agg(tgname || tgenabled::text, ',' ORDER BY oid) FROM pg_trigger),
           (SELECT string_agg(setconfig::text, ',') FROM pg_db_role_setting),
           (SELECT count(*) FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid
            WHERE c.relnamespace = 'public'::regnamespace),
           (SELECT sum(pg_total_relation_size(oid)) > 8000000 FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')
"""
_OTHERS: Final[LiteralString] = """
    SELECT pid, application_name, state, query FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Pool:
    """One migrated database at a time: the same one again, unless a test has done more than write rows."""

    def __init__(self, create: Callable[[], str], drop: Callable[[str], None]) -> None:
        self._create = create
        self._drop = drop
        self._url: str | None = None
        self._shape: Any = None
        self._uses = 0

    def take(self) -> str:
        if self._url is None:
            self._url, self._uses = self._create(), 0
            with psycopg.connect(self._url, autocommit=True) as conn:
                self._shape = conn.execute(_SHAPE).fetchone()
        self._uses += 1
        return self._url

    def give_back(self) -> list[tuple[Any, ...]]:
        """Whoever is still connected: a test that forgot something."""
        assert self._url is not None
        with psycopg.connect(self._url, autocommit=True) as conn:
            left = _others(conn)
            good = not left and self._uses < MOST_USES and conn.execute(_SHAPE).fetchone() == self._shape
            if good:
                _empty(conn)
        if not good:
            self.close()
        return left

    def close(self) -> None:
        if self._url is not None:
            self._drop(self._url)
            self._url = None


def still_connected(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as conn:
        return _others(conn)


def _others(conn: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """A closed connection takes the server a moment to see."""
    until = time.monotonic() + 5
    while True:
        left = conn.execute(_OTHERS).fetchall()
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


def _empty(conn: psycopg.Connection[Any]) -> None:
    conn.execute("SET session_replication_role = replica")  # no trigger writes rows about what is deleted
    for (table,) in conn.execute(_TABLES).fetchall():
        conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    conn.execute("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'")
