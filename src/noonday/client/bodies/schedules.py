"""What is sent: schedules. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict

from noonday.client.bodies.jobs import CalendarBody, TimeConfigBody, WindowBody
from noonday.client.values import IntervalUnit, Outside

__all__ = ["PreviewBody"]


class PreviewBody(TypedDict, total=False):
    schedule_type: Literal["cron", "interval", "calendar", "immediate", "once", "event", "manual"] | None
    cron_expression: str | None
    schedule_time: str | None
    interval_minutes: int | None
    interval_type: IntervalUnit | None
    after_completion: bool | None
    frequency: Literal["hourly", "daily", "weekly", "monthly", "cron"] | None
    time_config: TimeConfigBody | None
    run_at: str | datetime | None
    timezone: str | None
    start_at: str | datetime | None
    end_at: str | datetime | None
    max_runs: int | None
    jitter_seconds: float | None
    windows: list[WindowBody] | None
    calendar: CalendarBody | None
    outside: Outside | None
    trigger_webhook: str | None
    trigger_channel: str | None
    count: int
    after: str | datetime | None
    job_id: str | None
