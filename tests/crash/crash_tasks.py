"""Tasks that leave a mark of each start and end in a file, witnesses beside the scheduler's own history."""

from __future__ import annotations

import asyncio
import os
import time

from noonday import task
from noonday.targets.tasks import current


def mark(word: str) -> None:
    run = current()
    line = f"{word} {run.job_name} {run.execution_id} {run.attempt} {os.getpid()}\n"
    file = os.open(os.environ["CRASH_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@task("nap")
async def nap(seconds: float = 0.0) -> str:
    mark("start")
    await asyncio.sleep(seconds)
    mark("end")
    return f"attempt {current().attempt}"


@task("nap-in-thread")
def nap_in_thread(seconds: float) -> None:
    mark("start")
    time.sleep(seconds)
    mark("end")
