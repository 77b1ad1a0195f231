"""What comes back: services. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["Service", "ServicePage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`read_only`: a variable of the environment says where it lives, and goes before what is stored."""

    name: str
    url: str
    description: str
    source: Literal["environment", "stored"]
    variable: str | None
    read_only: bool
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePage:
    services: list[Service]
    total: int
