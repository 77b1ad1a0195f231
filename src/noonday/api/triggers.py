"""Triggers in the words of the API: who waits for what, and what a delivery has started."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from noonday.api.answers import Shape
from noonday.api.schedules import instant_text
from noonday.domain.job import Job, JobState
from noonday.store.deliveries import Delivery, Started
from noonday.store.registrations import Kind, Registration

__all__ = [
    "ChannelPage",
    "ChannelShape",
    "DeliveryPage",
    "DeliveryShape",
    "RemovedShape",
    "TestedShape",
    "TriggerStatus",
    "WebhookPage",
    "WebhookShape",
    "delivery_json",
    "registration_json",
    "registration_of",
    "tested_json",
]


class TriggerStatus(Shape):
    status: str
    webhooks_count: int
    channels_count: int
    pubsub_enabled: bool
    webhook_enabled: bool
    webhook_signed: bool


class RegistrationShape(Shape):
    job_id: str
    job_name: str
    enabled: bool
    paused: bool


class WebhookShape(RegistrationShape):
    pattern: str


class ChannelShape(RegistrationShape):
    channel: str


class WebhookPage(Shape):
    webhooks: list[WebhookShape]
    total: int
    limit: int
    offset: int


class ChannelPage(Shape):
    channels: list[ChannelShape]
    total: int
    limit: int
    offset: int


class RemovedShape(Shape):
    """What the job waited for until now."""

    job_id: str
    job_name: str
    webhook: str | None
    channel: str | None


class WouldShape(WebhookShape):
    would: str


class TestedShape(Shape):
    path: str
    matched: int
    jobs: list[WouldShape]


class StartedShape(Shape):
    job_id: str
    job_name: str
    execution_id: str
    status: str


class DeliveryShape(Shape):
    delivery_id: str
    path: str
    received_at: datetime
    matched: int
    replayed: bool
    executions: list[StartedShape]


class DeliveryPage(Shape):
    deliveries: list[DeliveryShape]
    total: int
    limit: int
    offset: int


def registration_of(job: Job, kind: Kind) -> Registration:
    return Registration(
        job_id=job.id,
        job_name=job.name,
        pattern=(job.trigger.webhook if kind is Kind.WEBHOOK else job.trigger.channel) or "",
        listening=job.enabled and job.state is not JobState.CANCELLED,
        paused=job.paused,
    )


def registration_json(found: Registration, kind: Kind) -> dict[str, Any]:
    return {
        "job_id": found.job_id,
        "job_name": found.job_name,
        "pattern" if kind is Kind.WEBHOOK else "channel": found.pattern,
        "enabled": found.listening,
        "paused": found.paused,
    }


def tested_json(path: str, found: Sequence[Registration]) -> dict[str, Any]:
    shown = [registration_json(one, Kind.WEBHOOK) | {"would": _would(one)} for one in found]
    return {"path": path, "matched": sum(one.listening for one in found), "jobs": shown}


def _would(found: Registration) -> str:
    if not found.listening:
        return "nothing"
    return "skip" if found.paused else "run"


def delivery_json(
    delivery: Delivery, *, replayed: bool = False, executions: Sequence[Started] | None = None
) -> dict[str, Any]:
    shown = delivery.started if executions is None else executions
    return {
        "delivery_id": delivery.id,
        "path": delivery.path,
        "received_at": instant_text(delivery.received_at),
        "matched": len(delivery.started),
        "replayed": replayed,
        "executions": [dict(entry) for entry in shown],
    }
