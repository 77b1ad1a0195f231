"""What is sent: access. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import datetime
from typing import Required, TypedDict

from noonday.client.values import Role

__all__ = ["KeyBody"]


class KeyBody(TypedDict, total=False):
    """`service` names the service of a key with the role service, and of no other."""

    name: Required[str]
    role: Required[Role]
    service: str | None
    expires_at: str | datetime | None
