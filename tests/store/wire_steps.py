"""What the server says of the session of a wire, and what was kept."""

from __future__ import annotations

from typing import Any

import psycopg

from noonday.store.cursors import WiredConnection


class Server:
    """What the server says of the session of a wire."""

    def __init__(self, url: str, wired: WiredConnection) -> None:
        self._url = url
        self._pid = wired.info.backend_pid

    def ask(self, query: Any) -> Any:
        with psycopg.connect(self._url, autocommit=True) as other:
            found = other.execute(query, (self._pid,)).fetchone()
            return None if found is None else found[0]

    @property
    def state(self) -> Any:
        return self.ask("SELECT state FROM pg_stat_activity WHERE pid = %s")

    def end(self) -> None:
        assert self.ask("SELECT pg_terminate_backend(%s, 5000)")


def kept(url: str) -> Any:
    with psycopg.connect(url, autocommit=True) as other:
        return [
            value for (value,) in other.execute("SELECT value FROM meta WHERE key LIKE 'wire%'").fetchall()
        ]


PUT = "INSERT INTO meta (key, value) VALUES (%s::TEXT, %s::TEXT)"
