"""What the engine counts as it goes; read by the health page, the metrics and the tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True, kw_only=True)
class Counters:
    planned: int = 0  # executions and lapses written by the planner
    claimed: int = 0
    enqueued: int = 0  # put on the streams
    restored: int = 0  # lost by the streams and put there anew
    rescued: int = 0  # of the streams' road, claimed in the database because nobody fed them
    settled: int = 0  # endings that became durable
    refused: int = 0  # endings whose lease had died
    recovered: int = 0  # dead leases settled
    lease_losses: int = 0  # attempts stopped here because their lease was gone
    abandoned: int = 0  # attempts that did not stop when told to
    set_aside: int = 0  # jobs that could not be planned
    stale_locks_cleared: int = 0
    pruned: int = 0
    last_check_at: datetime | None = None  # the planner's newest pass
