"""Operations: triggers. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Any

from noonday.client.answers.triggers import (
    Channel,
    ChannelPage,
    Delivery,
    DeliveryPage,
    Removed,
    Tested,
    TriggerStatus,
    Webhook,
    WebhookPage,
)
from noonday.client.bodies.triggers import RegisterChannelBody, RegisterWebhookBody, TestBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["AsyncTriggers", "Triggers"]


class TriggersCalls:
    @operation
    def call_webhook(
        self,
        body: dict[str, Any] | None = None,
        *,
        wait: int | None = None,
        x_webhook_signature: str | None = None,
        x_webhook_timestamp: str | None = None,
        webhook_id: str | None = None,
        webhook_timestamp: str | None = None,
        webhook_signature: str | None = None,
        x_webhook_path: str | None = None,
    ) -> Call[Delivery]:
        """Start the jobs that wait for a path, given in the body or a header."""
        return Call(
            method="POST",
            path="/api/v2/triggers/webhook",
            answers={200: Delivery, 202: Delivery},
            patience=wait or 0,
            body=body,
            headers={
                "Prefer": None if wait is None else f"wait={wait}",
                "X-Webhook-Signature": x_webhook_signature,
                "X-Webhook-Timestamp": x_webhook_timestamp,
                "Webhook-Id": webhook_id,
                "Webhook-Timestamp": webhook_timestamp,
                "Webhook-Signature": webhook_signature,
                "X-Webhook-Path": x_webhook_path,
            },
        )

    @operation
    def call_webhook_at(
        self,
        path: str,
        body: Any,
        *,
        wait: int | None = None,
        x_webhook_signature: str | None = None,
        x_webhook_timestamp: str | None = None,
        webhook_id: str | None = None,
        webhook_timestamp: str | None = None,
        webhook_signature: str | None = None,
    ) -> Call[Delivery]:
        """Start the jobs that wait for the path."""
        return Call(
            method="POST",
            path=address("/api/v2/triggers/webhook/{path}", slashes="path", path=path),
            answers={200: Delivery, 202: Delivery},
            patience=wait or 0,
            body=body,
            headers={
                "Prefer": None if wait is None else f"wait={wait}",
                "X-Webhook-Signature": x_webhook_signature,
                "X-Webhook-Timestamp": x_webhook_timestamp,
                "Webhook-Id": webhook_id,
                "Webhook-Timestamp": webhook_timestamp,
                "Webhook-Signature": webhook_signature,
            },
        )

    @operation
    def list_channels(self, *, limit: int | None = None, offset: int | None = None) -> Call[ChannelPage]:
        """List the jobs that wait for messages on channels.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/triggers/channels",
            answers={200: ChannelPage},
            query={"limit": limit, "offset": offset},
        )

    @operation
    def list_deliveries(self, *, limit: int | None = None, offset: int | None = None) -> Call[DeliveryPage]:
        """List the webhook calls that are remembered, newest first.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/triggers/deliveries",
            answers={200: DeliveryPage},
            query={"limit": limit, "offset": offset},
        )

    @operation
    def list_webhooks(self, *, limit: int | None = None, offset: int | None = None) -> Call[WebhookPage]:
        """List the jobs that wait for webhooks.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/triggers/webhooks",
            answers={200: WebhookPage},
            query={"limit": limit, "offset": offset},
        )

    @operation
    def register_channel(
        self, body: RegisterChannelBody, *, idempotency_key: str | None = None
    ) -> Call[Channel]:
        """Let messages on a channel start a job.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="POST",
            path="/api/v2/triggers/channels",
            answers={201: Channel},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def register_webhook(
        self, body: RegisterWebhookBody, *, idempotency_key: str | None = None
    ) -> Call[Webhook]:
        """Let calls of a path start a job.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="POST",
            path="/api/v2/triggers/webhooks",
            answers={201: Webhook},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def remove_triggers(self, job: str) -> Call[Removed]:
        """Let neither calls nor messages start a job; its schedule stays.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="DELETE", path=address("/api/v2/triggers/jobs/{job}", job=job), answers={200: Removed}
        )

    @operation
    def trigger_status(self) -> Call[TriggerStatus]:
        """How many jobs wait for webhooks and channels, and whether they are heard.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/triggers/status", answers={200: TriggerStatus})

    @operation
    def try_path(self, body: TestBody, *, idempotency_key: str | None = None) -> Call[Tested]:
        """Which jobs would a call of this path start? Nothing runs.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/v2/triggers/test",
            answers={200: Tested},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )


class Triggers(TriggersCalls, Group):
    """Triggers, at once."""


class AsyncTriggers(TriggersCalls, AsyncGroup):
    """Triggers, to be awaited."""
