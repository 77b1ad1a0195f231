"""Keys and callers on the wire: how they look, for the API and the CLI alike."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.bodies import Body
from noonday.api.fields import Instant, Label, ServiceName
from noonday.api.schedules import instant_text
from noonday.domain.access import ANYBODY, RIGHTS, Caller, Right, Role
from noonday.store.keys import ApiKey

__all__ = ["CallerShape", "KeyBody", "KeyPage", "KeyShape", "NewKeyShape", "caller_json", "key_json"]


class KeyBody(Body):
    """`service` names the service of a key with the role service, and of no other."""

    name: Label
    role: Annotated[Role, Field(strict=False)]
    service: ServiceName | None = None
    expires_at: Instant | None = None


class KeyShape(Shape):
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


class NewKeyShape(KeyShape):
    """With the key itself, this once."""

    key: str


class KeyPage(Shape):
    keys: list[KeyShape]
    total: int
    limit: int
    offset: int


class CallerShape(Shape):
    """`open`: nobody is asked who they are."""

    name: str
    role: Role
    service: str | None
    rights: list[Right]
    open: bool


def key_json(key: ApiKey, now: datetime) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "role": key.role.value,
        "service": key.service,
        "active": key.in_force(now),
        "created_at": instant_text(key.created_at),
        "created_by": key.created_by,
        "expires_at": instant_text(key.expires_at),
        "last_used_at": instant_text(key.last_used_at),
        "revoked_at": instant_text(key.revoked_at),
        "revoked_by": key.revoked_by,
    }


def caller_json(caller: Caller) -> dict[str, Any]:
    return {
        "name": caller.name,
        "role": caller.role.value,
        "service": caller.service,
        "rights": [right.value for right in Right if right in RIGHTS[caller.role]],
        "open": caller is ANYBODY,
    }
