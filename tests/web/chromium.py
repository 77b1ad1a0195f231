"""Chromium: the one of this machine, or the distribution's package where it may be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
_PATIENCE = 300.0  # seconds for apt


class NoChromium(Exception):
    """Neither here nor to be had; the text says why."""


def find() -> str:
    """The path of the program; installed first if need be and if we may."""
    given = os.environ.get("NOONDAY_TEST_CHROMIUM")
    if given:
        return given
    found = _found()
    if found is None:
        _install()
        found = _found()
    if found is None:
        raise NoChromium("no Chromium here after installing it; NOONDAY_TEST_CHROMIUM can say where it is")
    return found


def _found() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def _install() -> None:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise NoChromium("no Chromium here, and it cannot be installed: that takes apt-get and root")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", "chromium")):
        try:
            done = subprocess.run(
                [apt, *words], env=env, capture_output=True, text=True, timeout=_PATIENCE, check=False
            )
        except subprocess.TimeoutExpired as exc:
            raise NoChromium(f"apt-get {words[0]} took more than {_PATIENCE:g} s") from exc
        if done.returncode:
            raise NoChromium(f"apt-get {words[0]} did not work: {done.stderr.strip()[-300:]}")


def home_of(folder: Path) -> dict[str, str]:
    """Its own home, so that it reads and leaves nothing in anybody's."""
    return {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}


def main() -> int:
    """Before the tests: have it, or say plainly what will not run; in CI that is a failure."""
    try:
        print(f"browser tests use {find()}")
    except NoChromium as exc:
        print(f"browser tests will not run: {exc}")
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
