"""The parent of many worker processes, with children that are a few lines of Python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PARENT = """
import asyncio, sys
from noonday.instance.processes import Fleet
child = [sys.executable, "-c", sys.argv[1]]
fleet = Fleet(commands={"a": [*child, "a"], "b": [*child, "b"]}, hopeless=2)
sys.exit(asyncio.run(fleet.run()))
"""
# Says that it listens, and how it ended.
POLITE = """
import signal, sys, time
def end(number, frame):
    print("end " + sys.argv[1], flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("up " + sys.argv[1], flush=True)
while True: time.sleep(0.05)
"""
DEAF = """
import signal, sys, time
told = []
def hear(number, frame):
    told.append(number)
    print("told " + sys.argv[1], flush=True)
    if len(told) > 1: sys.exit(143)
signal.signal(signal.SIGTERM, hear)
print("up " + sys.argv[1], flush=True)
while True: time.sleep(0.05)
"""
CLUMSY = "import sys; print('up ' + sys.argv[1], flush=True); sys.exit(7)"
HOPELESS = "import sys; print('up ' + sys.argv[1], flush=True); sys.exit(2)"
CHILD = """
import asyncio, sys
from noonday.instance import processes
if "watch" in {how!r}: processes._told_by_the_kernel = lambda loop, stop: False
async def live():
    stop = asyncio.Event()
    processes.end_with_parent(stop.set)
    print("up " + sys.argv[1], flush=True)
    await stop.wait()
    await asyncio.sleep(0.2)  # in order, however often it is told
    print("end " + sys.argv[1], flush=True)
asyncio.run(live())
"""


@contextmanager
def fleet(child: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        parent = subprocess.Popen([sys.executable, "-c", PARENT, child], stdout=out, stderr=subprocess.STDOUT)
    try:
        yield parent
    finally:
        if parent.poll() is None:
            parent.kill()
            parent.wait(10)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def until(look: Callable[[], object], log: Path, within: float = 30.0) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)


def said(log: Path, word: str) -> list[str]:
    """Anywhere in a line: three processes write into this file at the same time."""
    return sorted(re.findall(rf"{word} [ab]", log.read_text()))


def test_the_first_signal_reaches_each_once_and_all_ends_well(log: Path) -> None:
    with fleet(POLITE, log) as parent:
        until(lambda: len(said(log, "up")) == 2, log)
        parent.send_signal(signal.SIGINT)
        assert parent.wait(20) == 0, log.read_text()
    assert said(log, "end") == ["end a", "end b"]


def test_the_second_signal_is_passed_on_too(log: Path) -> None:
    with fleet(DEAF, log) as parent:
        until(lambda: len(said(log, "up")) == 2, log)
        parent.send_signal(signal.SIGTERM)
        until(lambda: len(said(log, "told")) == 2, log)
        assert parent.poll() is None
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(20) == 128 + signal.SIGTERM, log.read_text()
    assert len(said(log, "told")) == 4


def test_who_ends_by_itself_is_started_anew_after_longer_and_longer_pauses(log: Path) -> None:
    with fleet(CLUMSY, log) as parent:
        until(lambda: log.read_text().count("pause_seconds=2.0") == 2, log)
        parent.send_signal(signal.SIGTERM)  # in the middle of a pause: it does not wait for its end
        assert parent.wait(20) == 0, log.read_text()
    text = log.read_text()
    assert "starting it anew" in text
    assert [f"pause_seconds={pause}" in text for pause in ("0.5", "1.0", "2.0")] == [True, True, True]


def test_a_start_that_cannot_succeed_ends_all(log: Path) -> None:
    with fleet(HOPELESS, log) as parent:
        assert parent.wait(30) == 2, log.read_text()
    assert "cannot be started" in log.read_text()


@pytest.mark.parametrize("how", ["kernel", "watch"])
def test_none_outlives_a_parent_that_was_killed(log: Path, how: str) -> None:
    with fleet(CHILD.replace("{how!r}", repr(how)), log) as parent:
        until(lambda: len(said(log, "up")) == 2, log)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        until(lambda: said(log, "end") == ["end a", "end b"], log)
