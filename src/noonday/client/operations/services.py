"""Operations: services. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.services import Service, ServicePage
from noonday.client.bodies.services import NewServiceBody, ServiceUrlBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["AsyncServices", "Services"]


class ServicesCalls:
    @operation
    def change(self, service: str, body: ServiceUrlBody) -> Call[Service]:
        """Say where a service lives; add it if it is new.

        Needs the right manage: admin.
        """
        return Call(
            method="PUT",
            path=address("/api/v2/services/{service}", service=service),
            answers={200: Service},
            body=body,
        )

    @operation
    def create(self, body: NewServiceBody, *, idempotency_key: str | None = None) -> Call[Service]:
        """Add a service.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/services",
            answers={201: Service},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def delete(self, service: str) -> Call[None]:
        """Forget where a service lives.

        Needs the right manage: admin.
        """
        return Call(
            method="DELETE", path=address("/api/v2/services/{service}", service=service), answers={204: None}
        )

    @operation
    def find(self) -> Call[ServicePage]:
        """List the services, by name.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/services", answers={200: ServicePage})

    @operation
    def read(self, service: str) -> Call[Service]:
        """Read a service.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET", path=address("/api/v2/services/{service}", service=service), answers={200: Service}
        )


class Services(ServicesCalls, Group):
    """Services, at once."""


class AsyncServices(ServicesCalls, AsyncGroup):
    """Services, to be awaited."""
