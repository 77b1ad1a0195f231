"""A real PgBouncer in transaction mode: the machine's own, or Debian's package unpacked, never installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.servers import Launch, NoServer, Server, free_port, short_folder

_CACHE = Path(sys.prefix) / "share" / "noonday-tests" / "pgbouncer"
_LIBRARIES = re.compile(r"lib(?:event|c-ares|cares)[\w.+-]*")  # those of its libraries that few machines have
_PATIENCE = 120.0


def start_pgbouncer(postgres_url: str, *, connections: int = 2) -> Server:
    """In front of the server of this URL, with so many connections to it for everybody together."""
    folder = short_folder("nd-pb-")
    try:
        return _launch(postgres_url, folder, connections)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _launch(postgres_url: str, folder: Path, connections: int) -> Server:
    there, port = urlsplit(postgres_url), free_port()
    password = f" password={there.password}" if there.password else ""
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": connections,
        "max_db_connections": connections,
        "max_client_conn": 500,
        "server_login_retry": 1,
    }
    lines = [f"{name} = {value}" for name, value in settings.items()]
    to = f"* = host={there.hostname} port={there.port or 5432} user={there.username}{password}"
    config = folder / "pgbouncer.ini"
    config.write_text("\n".join(["[databases]", to, "[pgbouncer]", *lines, ""]))
    url = urlunsplit(there._replace(netloc=f"{there.username}@127.0.0.1:{port}"))
    launch = Launch(
        command=["/usr/bin/env", f"LD_LIBRARY_PATH={folder}", str(_copied(folder)), str(config)],
        try_it=lambda: psycopg.connect(url, connect_timeout=2).close(),
        error=psycopg.OperationalError,
    )
    server = Server(url, folder=folder, launch=launch)
    server.start()
    return server


def _copied(folder: Path) -> Path:
    """The binary and its libraries in the server's own folder, where `nobody` can read them too."""
    binary, libraries = _found() or _fetched()
    for file in (binary, *libraries):
        shutil.copy(file, folder / file.name)
    return folder / binary.name


def _found() -> tuple[Path, list[Path]] | None:
    told = os.environ.get("NOONDAY_TEST_PGBOUNCER") or shutil.which("pgbouncer")
    for path in (told, "/usr/sbin/pgbouncer"):
        if path and Path(path).exists():
            return Path(path), []
    return None


def _fetched() -> tuple[Path, list[Path]]:
    binary = _CACHE / "usr" / "sbin" / "pgbouncer"
    if not binary.exists():
        unpacking = _CACHE.with_name(f"pgbouncer-{os.getpid()}")
        try:
            _fetch(unpacking)
            _CACHE.parent.mkdir(parents=True, exist_ok=True)
            if not binary.exists():
                unpacking.rename(_CACHE)
        except (OSError, subprocess.SubprocessError) as exc:
            told = (getattr(exc, "stderr", "") or str(exc)).strip()
            raise NoServer(f"no PgBouncer here, and its Debian package cannot be had: {told}") from exc
        finally:
            shutil.rmtree(unpacking, ignore_errors=True)
    return binary, [file for file in (_CACHE / "usr" / "lib").rglob("*.so.*") if file.is_file()]


def _fetch(folder: Path) -> None:
    folder.mkdir(parents=True)
    package = _downloaded(folder, "pgbouncer")
    depends = _run(folder, "dpkg-deb", "-f", str(package), "Depends")
    wanted = dict.fromkeys(_LIBRARIES.findall(depends))
    for file in (package, *(_downloaded(folder, name) for name in wanted)):
        _run(folder, "dpkg-deb", "-x", str(file), str(folder))


def _downloaded(folder: Path, package: str) -> Path:
    before = set(folder.glob("*.deb"))
    try:
        _run(folder, "apt-get", *_PRIVATE, "download", package)
    except subprocess.CalledProcessError:  # the machine has no lists of packages: fetch them, into the folder
        (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        private = (*_PRIVATE, "-o", f"Dir::State::lists={folder / 'lists'}")
        _run(folder, "apt-get", *private, "update")
        _run(folder, "apt-get", *private, "download", package)
    (made,) = set(folder.glob("*.deb")) - before
    return made


# Nothing of the machine's own is written.
_PRIVATE = (
    *("-q", "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
    *("-o", "APT::Sandbox::User=root"),
)


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, timeout=_PATIENCE)
    return done.stdout
