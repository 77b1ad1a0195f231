"""The installed command as a real process: pipes, encodings, signals, and a server beside it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOONDAY = [sys.executable, "-m", "noonday"]


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV")
    }
    return {**kept, "TZ": "UTC", **more}


def call(*words: str, folder: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*NOONDAY, *words],
        cwd=folder,
        env=environment(**env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        encoding="utf-8",
    )


@contextmanager
def served(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*NOONDAY, "serve", "--port", str(port), "--log-level", "warning"],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        first = server.stderr.readline()
        assert f"http://127.0.0.1:{port}" in first
        assert "open without sign-in" in first
        until_live(f"http://127.0.0.1:{port}/health/live", server)
        yield server
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        if server.stderr:
            server.stderr.close()


def until_live(url: str, server: subprocess.Popen[str]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            continue
    pytest.fail(f"the server ended with {server.returncode}")


def test_it_runs_as_a_module_without_colours_in_a_pipe(tmp_path: Path) -> None:
    done = call("next", "daily 02:00", "--from", "2027-01-01", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("At 02:00 every day, UTC\n")
    assert "\x1b" not in done.stdout


def test_it_speaks_to_a_terminal_without_utf8(tmp_path: Path) -> None:
    done = call(
        "next",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "--from",
        "2027-03-27",
        folder=tmp_path,
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
        LC_ALL="C",
    )
    assert done.returncode == 0
    assert "CET ? CEST" in done.stderr


def test_it_ends_quietly_when_the_reader_goes_away(tmp_path: Path) -> None:
    line = f"{sys.executable} -m noonday next '* * * * *' -n 1000 | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_reads_a_job_from_stdin_and_wants_a_yes_where_nobody_answers(tmp_path: Path) -> None:
    body = json.dumps({"name": "piped", "url": "http://a.example/", "schedule_type": "manual"})
    assert call("jobs", "add", "-f", "-", folder=tmp_path, stdin=body).returncode == 0
    refused = call("jobs", "rm", "piped", folder=tmp_path, stdin="y\n")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr


@pytest.mark.crash
def test_it_follows_a_run_on_a_server_beside_it(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert (
            call("jobs", "add", "good", "--manual", "--", "echo", "on the dot", folder=tmp_path).returncode
            == 0
        )
        good = call("jobs", "run", "good", "--wait", "--timeout", "30s", folder=tmp_path)
        assert (good.returncode, good.stdout) == (0, "on the dot\n"), good.stderr

        bad = (
            "jobs",
            "add",
            "bad",
            "--manual",
            "--retries",
            "0",
            "--",
            sys.executable,
            "-c",
            "raise SystemExit(3)",
        )
        assert call(*bad, folder=tmp_path).returncode == 0
        ended = call("jobs", "run", "bad", "--wait", "--timeout", "30s", folder=tmp_path)
        assert ended.returncode == 1, ended.stderr
        assert "exit status 3" in ended.stderr

        history = call("history", folder=tmp_path)
        assert "● completed" in history.stdout
        assert "✕ failed" in history.stdout

        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0
