"""What comes back: schedules. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Preview"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    schedule_type: str
    schedule_words: str
    timezone: str
    next_runs: list[datetime]
    next_runs_local: list[str]
