"""What comes back: triggers. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = [
    "Channel",
    "ChannelPage",
    "Delivery",
    "DeliveryPage",
    "Removed",
    "StartedShape",
    "Tested",
    "TriggerStatus",
    "Webhook",
    "WebhookPage",
    "Would",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    job_id: str
    job_name: str
    enabled: bool
    paused: bool
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPage:
    channels: list[Channel]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    delivery_id: str
    path: str
    received_at: datetime
    matched: int
    replayed: bool
    executions: list[StartedShape]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedShape:
    job_id: str
    job_name: str
    execution_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    deliveries: list[Delivery]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the job waited for until now."""

    job_id: str
    job_name: str
    webhook: str | None
    channel: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    path: str
    matched: int
    jobs: list[Would]


@dataclass(frozen=True, slots=True, kw_only=True)
class Would:
    job_id: str
    job_name: str
    enabled: bool
    paused: bool
    pattern: str
    would: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerStatus:
    status: str
    webhooks_count: int
    channels_count: int
    pubsub_enabled: bool
    webhook_enabled: bool
    webhook_signed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    job_id: str
    job_name: str
    enabled: bool
    paused: bool
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPage:
    webhooks: list[Webhook]
    total: int
    limit: int
    offset: int
