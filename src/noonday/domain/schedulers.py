"""A recurring job seen as a scheduler that is started and stopped, as the admin routes show it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from noonday.domain.job import Job
from noonday.domain.schedule import Cron, Frequency, Interval

__all__ = ["DOWN", "RECURRING", "Action", "SchedulerState", "is_recurring"]


class SchedulerState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"  # its last run failed for good
    STOPPED = "STOPPED"  # disabled or cancelled


DOWN: Final = frozenset({SchedulerState.ERROR, SchedulerState.STOPPED})
RECURRING: Final = ("cron", "interval", "calendar")  # kinds of schedule


class Action(StrEnum):
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    TRIGGER = "trigger"


def is_recurring(job: Job) -> bool:
    return isinstance(job.timing.schedule, Cron | Interval | Frequency)
