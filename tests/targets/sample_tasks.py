"""Tasks for the tests, importable by a task's own process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

from noonday.targets.tasks import TaskFailed, TaskRegistry, current, task

tasks = TaskRegistry()


def _about() -> dict[str, Any]:
    run = current()
    run.progress(0.25, "began")
    run.progress(1.0)
    return {
        "execution_id": run.execution_id,
        "attempt": run.attempt,
        "scheduled_for": run.scheduled_for.isoformat(),
        "config": run.config,
        "job_name": run.job_name,
        "cancelled": run.cancelled,
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
    }


@task("about-async", registry=tasks)
async def about_async() -> dict[str, Any]:
    await asyncio.sleep(0)
    return _about()


@task("about-thread", registry=tasks)
def about_thread() -> dict[str, Any]:
    return _about()


@task("about-process", mode="process", registry=tasks)
def about_process() -> dict[str, Any]:
    return _about()


@task("about-process-async", mode="process", registry=tasks)
async def about_process_async() -> dict[str, Any]:
    return await about_async()


@task("divide-async", registry=tasks)
async def divide_async(a: int, b: int = 1) -> float:
    return a / b


@task("divide-thread", registry=tasks)
def divide_thread(a: int, b: int = 1) -> float:
    return a / b


@task("divide-process", mode="process", registry=tasks)
def divide_process(a: int, b: int = 1) -> float:
    print("dividing", a, "by", b)
    return a / b


def _refuse() -> None:
    raise TaskFailed("no use", retryable=False, retry_after=timedelta(seconds=7))


@task("refuse-async", registry=tasks)
async def refuse_async() -> None:
    _refuse()


@task("refuse-thread", registry=tasks)
def refuse_thread() -> None:
    _refuse()


@task("refuse-process", mode="process", registry=tasks)
def refuse_process() -> None:
    _refuse()


@task("exit-async", registry=tasks)
async def exit_async() -> None:
    sys.exit(3)


@task("exit-thread", registry=tasks)
def exit_thread() -> None:
    sys.exit(3)


@task("exit-process", mode="process", registry=tasks)
def exit_process() -> None:
    sys.exit(3)


@task("set-async", registry=tasks)
async def set_async() -> set[int]:
    return {1}


@task("set-thread", registry=tasks)
def set_thread() -> set[int]:
    return {1}


@task("set-process", mode="process", registry=tasks)
def set_process() -> set[int]:
    return {1}


@task("vanish", mode="process", registry=tasks)
def vanish() -> None:
    print("last words", flush=True)
    os._exit(9)


@task("crash", mode="process", registry=tasks)
def crash() -> None:
    os.abort()


@task("spin", mode="process", registry=tasks)
def spin(marker: str) -> None:
    """Busy for ever, with a child of its own; leaves the marker when it is ended politely."""
    child = subprocess.Popen(["sleep", "1000"])
    print("spinning", flush=True)
    try:
        current().progress(0.5, f"{os.getpid()} {child.pid}")
        while True:
            pass
    finally:
        with open(marker, "w") as file:
            file.write("finally")


@task("deaf", mode="process", registry=tasks)
def deaf() -> None:
    while True:
        try:
            current().progress(0.5, str(os.getpid()))
            while True:
                pass
        except BaseException:
            continue


@task("wait-process-async", mode="process", registry=tasks)
async def wait_process_async(marker: str) -> None:
    try:
        current().progress(0.5, str(os.getpid()))
        await asyncio.Event().wait()
    finally:
        with open(marker, "w") as file:
            file.write(f"finally {current().cancelled}")


@task("many-reports", mode="process", registry=tasks)
def many_reports() -> str:
    for i in range(5_000):
        current().progress(i / 5_000, f"step {i}")
    current().progress(1.0, "done")
    return "ok"


@task("threads-inside", mode="process", registry=tasks)
def threads_inside() -> list[str]:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(current().execution_id))
    thread.start()
    thread.join()
    return found


def by_path(word: str = "hello") -> str:
    return word


class Holder:
    @staticmethod
    async def inner() -> int:
        return 5


not_callable = 7


@task("say-async", registry=tasks)
async def say_async(*lines: str) -> None:
    for line in lines:
        current().output(line)


@task("say-thread", registry=tasks)
def say_thread(*lines: str) -> None:
    for line in lines:
        current().output(line)


@task("say-process", mode="process", registry=tasks)
def say_process(*lines: str) -> None:
    for line in lines:
        current().output(line)
