"""Real processes of the scheduler, their HTTP door, and the marks that their tasks leave."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

T = TypeVar("T")
HERE = Path(__file__).parent
SERVE = ("serve", "--port", "0")


def eventually(look: Callable[[], T | None], within: float = 45.0) -> T:
    """What `look` finds, as soon as it finds something; processes can only be watched from outside."""
    until = time.monotonic() + within
    while True:
        try:
            found = look()
            error: Exception | None = None
        except (OSError, AssertionError) as exc:
            found, error = None, exc
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"nothing within {within:g} s") from error
        time.sleep(0.03)


@dataclass(frozen=True, slots=True)
class Mark:
    word: str
    job: str
    execution: str
    attempt: int
    pid: int


@dataclass(slots=True)
class World:
    """One database, one file of marks, and the processes that a test starts on them."""

    url: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    started: list[Noonday] = field(default_factory=list)

    def marks(self) -> list[Mark]:
        file = self.folder / "marks"
        lines = file.read_text().splitlines() if file.exists() else []
        return [Mark(w, j, e, int(a), int(p)) for w, j, e, a, p in (line.split() for line in lines)]

    def start(self, *words: str, **settings: str) -> Noonday:
        made = self.launch(*words, **settings)
        made.wait_until_ready()
        return made

    def launch(self, *words: str, **settings: str) -> Noonday:
        """`noonday serve` on a free port, or the command that the words say."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        env |= {
            "DATABASE_URL": self.url,
            "CRASH_MARKS": str(self.folder / "marks"),
            "TASK_MODULES": "crash_tasks",
            "PYTHONPATH": str(HERE),
            "PYTHONUNBUFFERED": "1",
            "LOG_FORMAT": "json",
            "SCHEDULER_LEASE_TTL": "1500ms",
            "SCHEDULER_LEADER_TTL": "4s",
            "SHUTDOWN_GRACE": "20s",
        }
        log = self.folder / f"log-{len(self.started)}"
        made = Noonday(self, words or SERVE, env | self.settings | settings, log)
        self.started.append(made)
        return made

    def end(self) -> None:
        for one in self.started:
            one.end()


class Noonday:
    def __init__(self, world: World, words: Sequence[str], env: dict[str, str], log: Path) -> None:
        self.log = log
        self.url = ""
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "noonday", *words],
                env=env,
                cwd=world.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def lines(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_until_ready(self) -> None:
        def ready() -> str | None:
            assert self.process.poll() is None, self.lines()
            found = re.search(r"is ready(?:, without an API| on (http://[\w.:\[\]]+))", self.lines())
            return found and (found[1] or "nowhere")

        self.url = eventually(ready)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait(20)

    def wait(self, within: float = 40.0) -> int:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end:\n{self.lines()[-3000:]}") from None

    def end(self) -> None:
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.kill()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=20) as answer:
                text = answer.read()
        except HTTPError as exc:
            raise AssertionError(f"{method} {path}: {exc.code} {exc.read().decode()}") from exc
        return json.loads(text) if text else None

    def add(self, name: str, task: str = "nap", *args: object, **fields: object) -> Any:
        body = {"name": name, "target": {"type": "python", "task": task, "args": list(args)}} | fields
        return self.ask("POST", "/api/v2/jobs", body)

    def history(self, name: str) -> list[dict[str, Any]]:
        """All rows, oldest due time first."""
        rows: list[dict[str, Any]] = []
        while True:
            page = self.ask("GET", f"/api/v2/jobs/{name}/executions?limit=100&offset={len(rows)}")
            rows += page["executions"]
            if len(rows) >= page["total"] or not page["executions"]:
                return rows[::-1]


@contextmanager
def world(url: str, folder: Path, **settings: str) -> Iterator[World]:
    made = World(url, folder, settings)
    try:
        yield made
    finally:
        made.end()
