"""What is sent: triggers. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Required, TypedDict

__all__ = ["RegisterChannelBody", "RegisterWebhookBody", "TestBody"]


class RegisterChannelBody(TypedDict, total=False):
    job_id: Required[str]
    channel: Required[str]


class RegisterWebhookBody(TypedDict, total=False):
    job_id: Required[str]
    pattern: Required[str]


class TestBody(TypedDict, total=False):
    path: Required[str]
