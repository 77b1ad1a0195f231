"""Processes of a peer: started, watched and ended with all their children."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

ROOT = Path(__file__).parents[2]
Running = list[subprocess.Popen[bytes]]


@contextmanager
def started(
    commands: Sequence[Sequence[str]], around: Mapping[str, str], errors: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[Running]:
    running = [
        subprocess.Popen(command, env=dict(around), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)
        for command in commands
    ]
    try:
        yield running
    finally:
        family = list(_family(running))
        for process in running:
            process.terminate()
        _, alive = psutil.wait_procs(family, timeout=5)
        for one in alive:  # only what was started here, and its children
            with suppress(psutil.NoSuchProcess):
                one.kill()
        for process in running:
            process.wait()


def ended(running: Running) -> bool:
    return any(process.poll() is not None for process in running)


def cpu(running: Running) -> float:
    """Seconds of the processor that they have used since their start."""
    total = 0.0
    for one in _family(running):
        with suppress(psutil.NoSuchProcess):
            used = one.cpu_times()
            total += used.user + used.system
    return total


def megabytes(running: Running) -> float:
    """The most memory that each has had; where the system does not tell, what it has now."""
    total = 0.0
    for one in _family(running):
        with suppress(psutil.NoSuchProcess, OSError):
            total += _peak(one)
    return total


def _peak(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6  # it counts in 1,024 bytes
    return float(process.memory_info().rss) / 1e6


def _family(running: Running) -> Iterator[psutil.Process]:
    for process in running:
        with suppress(psutil.NoSuchProcess):
            head = psutil.Process(process.pid)
            yield from (head, *head.children(recursive=True))
