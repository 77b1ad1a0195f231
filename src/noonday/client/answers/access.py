"""What comes back: access. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from noonday.client.values import Right, Role

__all__ = ["Caller", "Key", "KeyPage", "NewKey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`open`: nobody is asked who they are."""

    name: str
    role: Role
    service: str | None
    rights: list[Right]
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """`prefix` is the part of the key that may be shown; `active`: it opens the door now."""

    id: str
    name: str
    prefix: str
    role: Role
    service: str | None
    active: bool
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPage:
    keys: list[Key]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """With the key itself, this once."""

    id: str
    name: str
    prefix: str
    role: Role
    service: str | None
    active: bool
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    key: str
