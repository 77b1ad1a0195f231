"""`noonday worker` and `noonday scheduler`: one role in a process of its own, or workers in many."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from noonday.cli import output
from noonday.cli.errors import USAGE
from noonday.cli.flags import SchedulerFlags, WorkerFlags
from noonday.cli.serve import greeting
from noonday.domain.errors import invalid
from noonday.instance import run_instance, run_processes
from noonday.settings import load

__all__ = ["scheduler", "worker"]

_NO_FLAGS = WorkerFlags()
_NONE = SchedulerFlags()
_MOST = 256


def worker(*, processes: Annotated[int, Parameter(alias="-p")] = 1, flags: WorkerFlags = _NO_FLAGS) -> int:
    """Claim and run what is due, without API or planner, until SIGTERM or Ctrl-C.

    Parameters
    ----------
    processes:
        How many processes, each with --workers slots of its own: about one for each core [1].
    """
    if not 1 <= processes <= _MOST:
        raise invalid("--processes", processes, f"must lie between 1 and {_MOST}")
    settings = load(**flags.given(), roles="worker")
    times = f"{processes} processes · " if processes > 1 else ""
    output.say(times + greeting(settings))
    if processes == 1:
        return run_instance(settings)
    command = [sys.executable, "-m", "noonday", "worker", *flags.words()]
    return run_processes(settings, command, processes, hopeless=USAGE)


def scheduler(*, flags: SchedulerFlags = _NONE) -> int:
    """Plan what becomes due while this instance leads, without API or workers, until SIGTERM or Ctrl-C."""
    settings = load(**flags.given(), roles="scheduler")
    output.say(greeting(settings))
    return run_instance(settings)
