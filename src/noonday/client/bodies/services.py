"""What is sent: services. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Required, TypedDict

__all__ = ["NewServiceBody", "ServiceUrlBody"]


class NewServiceBody(TypedDict, total=False):
    url: Required[str]
    description: str | None
    name: Required[str]


class ServiceUrlBody(TypedDict, total=False):
    url: Required[str]
    description: str | None
