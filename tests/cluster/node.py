"""One real `noonday serve` process: started, killed, stopped, paused, and asked over HTTP."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
from redis import RedisError

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Refused(AssertionError):
    """The instance answered with an error."""

    def __init__(self, what: str, status: int, text: str) -> None:
        super().__init__(f"{what}: {status} {text[:500]}")
        self.status = status


def eventually(look: Callable[[], T | None], within: float = 30.0, what: str = "") -> T:
    """What `look` finds, as soon as it finds something; processes can only be watched from outside."""
    until = time.monotonic() + within
    error: Exception | None = None
    while True:
        try:
            if found := look():
                return found
        except (OSError, HTTPException, psycopg.Error, RedisError, Refused) as exc:
            error = exc
        if time.monotonic() > until:
            raise AssertionError(f"nothing within {within:g} s{what and ': '}{what}") from error
        time.sleep(0.05)


def _die_with_parent() -> None:
    """Even if the tests are killed outright, no instance stays behind, not even one that is paused."""
    if _libc is not None:
        _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Node:
    """Keeps its name, port and log over all its starts."""

    def __init__(
        self, name: str, port: int, env: Mapping[str, str], folder: Path, command: str = "serve"
    ) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", "noonday", command, "--port", str(port)]
        self._env = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        self._env |= {"SCHEDULER_INSTANCE_ID": name, "PYTHONUNBUFFERED": "1", **env}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.paused = False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def answers(self) -> bool:
        return self.alive and not self.paused

    def launch(self) -> None:
        assert not self.alive, f"{self.name} runs already"
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                env=self._env,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for whoever started it
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no lock that a thread may hold
            )
        self.paused = False

    def wait_until_ready(self, within: float = 60.0) -> None:
        def ready() -> bool:
            if not self.alive:
                raise AssertionError(f"{self.name} ended while it started:\n{self.tail()}")
            return bool(self.ask("GET", "/health/ready")["status"] == "healthy")

        eventually(ready, within, f"{self.name} is not ready")

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def kill(self) -> float:
        """As kill -9; the moment."""
        at = time.time()
        self._send(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(20)
        return at

    def terminate(self) -> float:
        self._send(signal.SIGTERM)
        return time.time()

    def wait(self, within: float = 40.0) -> int:
        assert self._process is not None
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self.tail()}") from None

    def pause(self) -> float:
        self._send(signal.SIGSTOP)
        self.paused = True
        return time.time()

    def wake(self) -> float:
        at = time.time()
        self._send(signal.SIGCONT)
        self.paused = False
        return at

    def end(self) -> None:
        if self.alive:
            self.wake()
            self.kill()

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"{self.name} is not there"
        self._process.send_signal(number)

    def ask(self, method: str, path: str, body: object = None, patience: float = 10.0) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=patience) as answer:
                text = answer.read()
        except HTTPError as exc:
            with exc:
                raise Refused(f"{self.name}: {method} {path}", exc.code, exc.read().decode()) from exc
        return json.loads(text) if text else None

    def health(self, patience: float = 2.0) -> Any:
        """None when it does not answer, or says that it is not well."""
        with suppress(OSError, HTTPException, Refused):
            return self.ask("GET", "/api/v2/scheduler/health", patience=patience)
        return None

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []

    def tail(self, number: int = 25) -> str:
        return "\n".join(self.lines()[-number:])
