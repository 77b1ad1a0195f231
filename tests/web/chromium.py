"""Chromium: the one of this machine, or the distribution's package where it may be installed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
_PATIENCE = 300.0  # seconds for apt, all in all
_LOCKED = 60  # seconds while somebody else installs something


class NoChromium(Exception):
    """Neither here nor to be had; the text says why."""


def find() -> str:
    """The path of the program."""
    found = [os.environ.get("NOONDAY_TEST_CHROMIUM"), *map(shutil.which, NAMES)]
    there = next((path for path in found if path), None)
    if there is None:
        raise NoChromium(
            "no Chromium here: `make test` installs it where it may, NOONDAY_TEST_CHROMIUM names it"
        )
    return there


def find_or_install() -> str:
    """Installed first if need be, and if we may."""
    try:
        return find()
    except NoChromium:
        _install()
        return find()


def _install() -> None:
    """Never asks for anything: neither for a password nor what to do with a file that was changed."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise NoChromium("no Chromium here, and no apt-get to install it with")
    until = time.monotonic() + _PATIENCE
    before = _as_root(until)
    for words in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", "chromium")):
        waits = ("-o", f"DPkg::Lock::Timeout={_LOCKED}")
        done = _run([*before, "env", "DEBIAN_FRONTEND=noninteractive", apt, *waits, *words], until)
        if done.returncode:
            raise NoChromium(f"no Chromium here, and apt-get {words[0]} failed: {done.stderr.strip()[-300:]}")


def _as_root(until: float) -> tuple[str, ...]:
    """What goes before a command that only root may give."""
    if os.geteuid() == 0:
        return ()
    sudo = shutil.which("sudo")
    if sudo is None or _run([sudo, "-n", "true"], until).returncode:
        raise NoChromium("no Chromium here, and to install it takes root, or sudo without a password")
    return (sudo, "-n")


def _run(command: list[str], until: float) -> subprocess.CompletedProcess[str]:
    """Killed with all that it started when the time is over."""
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True
        )
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired as exc:
            with suppress(PermissionError, subprocess.TimeoutExpired):  # what root runs is left alone
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
            raise NoChromium(f"no Chromium here, and to install it took more than {_PATIENCE:g} s") from exc
        told.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, stderr=told.read())


def home_of(folder: Path) -> dict[str, str]:
    """Its own home, so that it reads and leaves nothing in anybody's."""
    return {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}


def main() -> int:
    """Before the tests: have it, or say plainly what will not run; in CI that is a failure."""
    try:
        print(f"browser tests use {find_or_install()}", flush=True)
    except NoChromium as exc:
        print(f"{exc}.\nThese tests will not run: {', '.join(of_browsers())}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return 0


def of_browsers() -> list[str]:
    """The files whose tests ask for a browser."""
    fixtures = re.compile(r"\b(browser|browser_page|watched|reader): ")
    found = Path(__file__).parent.glob("test_*.py")
    return sorted(f"tests/web/{path.name}" for path in found if fixtures.search(path.read_text()))


if __name__ == "__main__":
    raise SystemExit(main())
