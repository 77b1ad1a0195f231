"""The process of a Python task in mode `process`: reads what to call, calls it, reports on a pipe of its own.

Standard output and error belong to the task; reports go as JSON lines to the descriptor in NOONDAY_REPORT_FD.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any, TextIO

from noonday.targets.bounds import kept_json
from noonday.targets.results import REPORT_VARIABLE, raised
from noonday.targets.tasks import RunContext, TaskCancelled, claim_process

MAIN = (
    "__noonday_main__"  # the name under which a script's own file is loaded again: its main guard stays shut
)


class _Pipe:
    """Reports to the scheduler; lines from several threads do not mix."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def say(self, **message: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()

    def progress(self, fraction: float | None, message: str | None) -> None:
        self.say(fraction=fraction, message=message)


def load(path: str, file: str | None) -> Callable[..., Any]:
    module, _, qualname = path.partition(":")
    if file is None:
        place: object = importlib.import_module(module)
    else:
        place = SimpleNamespace(**runpy.run_path(file, run_name=MAIN))
    found: object = reduce(getattr, qualname.split("."), place)
    if not callable(found):
        raise TypeError(f"{path} is not a function")
    return found


def call(order: dict[str, Any], stopped: threading.Event) -> Any:
    function = load(order["path"], order.get("file"))
    args, kwargs = order["args"], order["kwargs"]
    if inspect.iscoroutinefunction(function):
        return asyncio.run(_drive(function(*args, **kwargs), stopped))
    signal.signal(signal.SIGTERM, lambda *_: _stop(stopped))
    return function(*args, **kwargs)


def _stop(stopped: threading.Event) -> None:
    """Ends the task the way Ctrl-C would, so that its `finally` blocks run; once is enough."""
    if not stopped.is_set():
        stopped.set()
        raise TaskCancelled("the run was cancelled")


async def _drive(coroutine: Any, stopped: threading.Event) -> Any:
    task = asyncio.ensure_future(coroutine)

    def stop() -> None:
        stopped.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    return await task


def main() -> None:
    order = json.load(sys.stdin)
    descriptor = int(os.environ.pop(REPORT_VARIABLE))
    os.set_inheritable(descriptor, False)
    pipe = _Pipe(os.fdopen(descriptor, "w", encoding="utf-8"))
    stopped = threading.Event()
    about = order["context"]
    claim_process(
        RunContext(
            execution_id=about["execution_id"],
            attempt=about["attempt"],
            scheduled_for=datetime.fromisoformat(about["scheduled_for"]),
            job_name=about["job_name"],
            config=about["config"],
            report=pipe.progress,
            write=partial(print, end="", flush=True),
            asked_to_stop=stopped.is_set,
        )
    )
    try:
        value, why_not = kept_json(call(order, stopped))
    except BaseException as exc:  # whatever it is, the scheduler hears of it
        if stopped.is_set():
            pipe.say(end="cancelled")
            return
        failure = raised(exc)
        wait = failure.retry_after
        pipe.say(
            end="raised",
            error=failure.error,
            stack=failure.stack,
            retryable=failure.retryable,
            retry_after=None if wait is None else wait.total_seconds(),
        )
    else:
        pipe.say(end="returned", value=value, dropped=why_not)


if __name__ == "__main__":
    main()
