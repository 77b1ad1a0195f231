"""What all peers run on, and how a function of a peer's module is called in the peer's own environment."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from bench.peers.field import Peer
from bench.peers.processes import ROOT


class NoResult(Exception):
    """It could not be measured; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The same servers for all, and a folder for marks that is emptied each time."""

    postgres: str
    redis: str
    folder: Path
    python: str  # of the environment in which the peers are installed

    def surroundings(self, peer: Peer, more: Mapping[str, str] | None = None) -> dict[str, str]:
        own = {
            "BENCH_PG": self.postgres,
            "BENCH_REDIS": self.redis,
            "BENCH_MARKS": str(self.folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            "HISTORY_KEEP_RUNS": "1000000",  # all of it is kept
        }
        if "BENCH_SQLITE" in peer.settings:
            own["BENCH_SQLITE"] = str(self.folder / "bench.db")
        return {**os.environ, **peer.settings, **own, **(more or {})}

    def call(self, peer: Peer, around: Mapping[str, str], function: str, *values: object) -> Any:
        """Run a function of the peer's module; its answer comes back as JSON."""
        code = (
            f"import json, {peer.module} as m; "
            f"print('\\n' + json.dumps(m.{function}({', '.join(map(repr, values))})))"
        )
        python = sys.executable if peer.ours else self.python
        try:
            done = subprocess.run(
                [python, "-c", code],
                env=dict(around),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise NoResult(f"{function} took longer than {exc.timeout:g} s") from exc
        if done.returncode:
            raise NoResult(f"{function}: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout.splitlines()[-1])

    @property
    def database(self) -> str:
        """Where ours is on the PostgreSQL server."""
        return self.postgres.rpartition("/")[0] + "/noonday_bench"

    @contextmanager
    def history(self, peer: Peer) -> Iterator[Callable[[LiteralString], Any]]:
        """Asks the database of ours; the first row, or None."""
        if "BENCH_SQLITE" in peer.settings:
            with closing(sqlite3.connect(self.folder / "bench.db", timeout=30)) as file:
                yield lambda query: file.execute(query).fetchone()
        else:
            with psycopg.connect(self.database, autocommit=True) as connection:
                yield lambda query: connection.execute(query).fetchone()

    def commands(
        self, peer: Peer, around: Mapping[str, str], function: str, *values: object
    ) -> list[list[str]]:
        found = self.call(peer, around, function, *values)
        return list(found.values()) if isinstance(found, dict) else list(found)
