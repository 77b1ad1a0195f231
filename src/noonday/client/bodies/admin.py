"""What is sent: admin. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Required, TypedDict

from noonday.client.values import SchedulersAction

__all__ = ["ActionBody"]


class ActionBody(TypedDict, total=False):
    action: Required[SchedulersAction]
    schedulerId: Required[str]
