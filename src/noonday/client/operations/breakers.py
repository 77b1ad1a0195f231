"""Operations: breakers. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.breakers import Breaker, BreakerPage
from noonday.client.calling import AsyncGroup, Call, Group, address, operation
from noonday.client.values import BreakerState

__all__ = ["AsyncBreakers", "Breakers"]


class BreakersCalls:
    @operation
    def find(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        state: BreakerState | None = None,
        q: str | None = None,
    ) -> Call[BreakerPage]:
        """Domains that failed, those that are held back first; `parked` counts who waits for them.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/breakers",
            answers={200: BreakerPage},
            query={"limit": limit, "offset": offset, "state": state, "q": q},
        )

    @operation
    def read(self, domain: str) -> Call[Breaker]:
        """The breaker of one domain.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET", path=address("/api/v2/breakers/{domain}", domain=domain), answers={200: Breaker}
        )

    @operation
    def reset(self, domain: str, *, idempotency_key: str | None = None) -> Call[Breaker]:
        """Close it: who waited for it goes on at once.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/breakers/{domain}/reset", domain=domain),
            answers={200: Breaker},
            headers={"Idempotency-Key": idempotency_key},
        )


class Breakers(BreakersCalls, Group):
    """Breakers, at once."""


class AsyncBreakers(BreakersCalls, AsyncGroup):
    """Breakers, to be awaited."""
