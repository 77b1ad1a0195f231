"""What is sent: registry. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

from noonday.client.values import Overlap

__all__ = ["CronBody", "DeclarationBody", "RegisterAllBody", "RegisterBody"]


class CronBody(TypedDict, total=False):
    cronExpression: Required[str]
    timezone: str | None


class DeclarationBody(TypedDict, total=False):
    """What a service says of one of its jobs; what it leaves out is as usual."""

    name: Required[str]
    displayName: str | None
    description: str | None
    cronExpression: Required[str]
    timezone: str | None
    enabled: bool | None
    jobType: str | None
    service: str | None
    endpoint: Required[str]
    config: dict[str, Any] | None
    metadata: dict[str, Any] | None
    critical: bool | None
    tags: list[str] | None
    priority: int | None
    timeoutSeconds: float | None
    maxRetries: int | None
    retryBackoffSeconds: float | None
    misfireGraceSeconds: float | None
    maxInstances: int | None
    overlap: Overlap | None
    dependsOn: list[str] | None
    onSuccessOf: list[str] | None
    override: bool | list[str]


class RegisterAllBody(TypedDict, total=False):
    """All jobs of a service."""

    service: Required[str]
    jobs: Required[list[DeclarationBody]]
    prune: Literal["disable", "keep"]


class RegisterBody(TypedDict, total=False):
    name: Required[str]
    displayName: str | None
    description: str | None
    cronExpression: Required[str]
    timezone: str | None
    enabled: bool | None
    jobType: str | None
    service: Required[str]
    endpoint: Required[str]
    config: dict[str, Any] | None
    metadata: dict[str, Any] | None
    critical: bool | None
    tags: list[str] | None
    priority: int | None
    timeoutSeconds: float | None
    maxRetries: int | None
    retryBackoffSeconds: float | None
    misfireGraceSeconds: float | None
    maxInstances: int | None
    overlap: Overlap | None
    dependsOn: list[str] | None
    onSuccessOf: list[str] | None
    override: bool | list[str]
