"""A real server on a free port, with the jobs and the history of `noonday demo`."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noonday.cli.demo.filling import Filling
from noonday.settings import load
from noonday.store import migrate
from tests.cluster.node import Node
from tests.servers import free_port

_NAME = "noonday.db"
_NOWHERE = "http://127.0.0.1:9"  # until a server says where the services of the demonstration are
_SETTINGS = {"LOG_LEVEL": "warning", "SHUTDOWN_GRACE": "0s"}


class LiveSite:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.url = node.url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer."""
        return self._node.ask(method, path, body)

    def make(self, name: str, **body: Any) -> dict[str, Any]:
        """A job of a test's own: it would run once in a thousand years unless told otherwise."""
        given = {"name": name, **body}
        if not body.keys() & {"schedule_type", "cron_expression", "frequency", "run_at"}:
            given |= {"schedule_type": "once", "run_at": "2999-01-01T00:00:00Z"}
        if not body.keys() & {"url", "target"}:
            given["target"] = {"type": "command", "argv": ["true"]}
        made: dict[str, Any] = self.ask("POST", "/api/v2/jobs", given)
        return made


async def filled(folder: Path) -> Path:
    """The database of a demonstration: the first of several processes of tests makes it, the others wait."""
    made = folder / "demo.db"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            begun = folder / "demo.begun.db"
            url = f"sqlite:///{begun}"
            migrate.upgrade(url)
            async with Filling(load(database_url=url)) as filling:
                await filling.fill(_NOWHERE)
            begun.rename(made)
    return made


@contextmanager
def live(folder: Path, database: Path | None = None) -> Iterator[LiveSite]:
    """In this folder; `database` is one that was filled already, of which it takes a copy."""
    if database is not None:
        shutil.copy(database, folder / _NAME)
    env = {"DATABASE_URL": f"sqlite:///{folder / _NAME}", **_SETTINGS}
    node = Node("site", free_port(), env, folder, "demo")
    try:
        node.start()
        yield LiveSite(node)
    finally:
        if node.alive:
            node.terminate()
            node.wait()
