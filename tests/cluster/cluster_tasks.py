"""Tasks of the instances under test: they leave a line for each run, as witnesses beside the history."""

from __future__ import annotations

import os
import time
from pathlib import Path

from noonday import task
from noonday.targets.tasks import current

_MARKS = Path("marks")


@task("mark")
async def mark() -> None:
    run = current()
    file = os.open(_MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{run.execution_id} {run.attempt} {time.time()}\n".encode())
    finally:
        os.close(file)
