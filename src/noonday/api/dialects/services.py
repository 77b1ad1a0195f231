"""Services on the wire: where each lives and who says so."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.bodies import Body
from noonday.api.fields import Description, HttpUrl, ServiceName
from noonday.api.schedules import instant_text
from noonday.control.secrets import redacted
from noonday.control.services import Known

__all__ = ["NewServiceBody", "ServicePage", "ServiceShape", "ServiceUrlBody", "service_json"]


class ServiceUrlBody(Body):
    url: HttpUrl = Field(description="its base URL, to which the endpoints of jobs are added")
    description: Description | None = None


class NewServiceBody(ServiceUrlBody):
    name: ServiceName


class ServiceShape(Shape):
    """`read_only`: a variable of the environment says where it lives, and goes before what is stored."""

    name: str
    url: str
    description: str
    source: Literal["environment", "stored"]
    variable: str | None
    read_only: bool
    created_at: datetime | None
    updated_at: datetime | None


class ServicePage(Shape):
    services: list[ServiceShape]
    total: int


def service_json(known: Known) -> dict[str, Any]:
    stored = known.stored
    return {
        "name": known.name,
        "url": redacted(known.url),
        "description": stored.description if stored else "",
        "source": "environment" if known.variable else "stored",
        "variable": known.variable,
        "read_only": known.variable is not None,
        "created_at": instant_text(stored.created_at) if stored else None,
        "updated_at": instant_text(stored.updated_at) if stored else None,
    }
