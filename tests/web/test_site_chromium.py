"""Where the browser of the tests comes from on a machine that has none, as pretended here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.web import chromium

Program = Callable[[str, str], None]
_INSTALLS = 'case "$*" in *install*) cp "$0" "${0%/*}/chromium";; esac; echo "$*" >> "${0%/*}/asked"'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only one in which programs are found, besides those of the system that a shell needs."""
    found = {name: path for name in ("sh", "cp", "env", "sleep") if (path := shutil.which(name))}
    for name, path in found.items():
        (tmp_path / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NOONDAY_TEST_CHROMIUM", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


@pytest.fixture
def program(folder: Path) -> Program:
    def make(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return make


def test_it_is_installed_without_a_question(program: Program, folder: Path) -> None:
    program("apt-get", _INSTALLS)
    assert chromium.find_or_install() == str(folder / "chromium")
    asked = (folder / "asked").read_text().splitlines()
    assert [("update" in line, "install" in line and "-y" in line) for line in asked] == [
        (True, False),
        (False, True),
    ]
    assert chromium.find_or_install() == str(folder / "chromium")
    assert (folder / "asked").read_text().splitlines() == asked  # it is there now


def test_sudo_is_asked_only_if_it_needs_no_password(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program("apt-get", _INSTALLS)
    with pytest.raises(chromium.NoChromium, match="sudo without a password"):
        chromium.find_or_install()
    program("sudo", "exit 1")
    with pytest.raises(chromium.NoChromium, match="sudo without a password"):
        chromium.find_or_install()
    program("sudo", '[ "$1" = -n ] && shift && [ "$1" = true ] || exec "$@"')
    assert chromium.find_or_install() == str(folder / "chromium")


def test_what_hangs_or_fails_is_given_up(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program("apt-get", "echo no network >&2; exit 100")
    with pytest.raises(chromium.NoChromium, match="apt-get update failed: no network"):
        chromium.find_or_install()
    monkeypatch.setattr(chromium, "_PATIENCE", 0.2)
    program("apt-get", "sleep 60")
    with pytest.raises(chromium.NoChromium, match=r"took more than 0\.2 s"):
        chromium.find_or_install()


@pytest.mark.usefixtures("folder")
def test_it_says_which_tests_do_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chromium.main() == 0
    told = capsys.readouterr().err
    assert "no apt-get" in told
    assert "tests/web/test_pages_everywhere.py" in told
    assert "tests/web/test_jobs_page.py" not in told
    monkeypatch.setenv("CI", "true")
    assert chromium.main() == 1
