"""A terminal for the tests: commands called in this process, on a SQLite file of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from noonday.cli import main
from tests.cli.terminal import Answer, Terminal


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder and an environment without a word about Noonday."""
    for name in list(os.environ):
        if name.startswith(("SCHEDULER_", "DATABASE_", "REDIS_", "JOB_", "LOG_", "HISTORY_", "NETWORK_")):
            monkeypatch.delenv(name)
    for name in ("HOST", "PORT", "MAX_WORKERS", "COLUMNS", "FORCE_COLOR", "TASK_MODULES", "PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    def call(*words: str) -> Answer:
        capsys.readouterr()
        code = main(words)
        streams = capsys.readouterr()
        return Answer(code, streams.out, streams.err)

    return call
