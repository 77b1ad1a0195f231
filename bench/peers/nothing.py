"""The task of Noonday's jobs: it leaves its mark and does nothing."""

from __future__ import annotations

from bench.peers.marks import mark
from noonday.targets.tasks import current, task


@task
async def nothing() -> None:
    mark(0, current().scheduled_for.timestamp())
