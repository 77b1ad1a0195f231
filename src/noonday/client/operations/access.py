"""Operations: access. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.access import Caller, Key, KeyPage, NewKey
from noonday.client.bodies.access import KeyBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["Access", "AsyncAccess"]


class AccessCalls:
    @operation
    def create(self, body: KeyBody) -> Call[NewKey]:
        """Make an API key: it is shown this once.

        Needs the right access: admin.
        """
        return Call(method="POST", path="/api/v2/keys", answers={201: NewKey}, body=body)

    @operation
    def find(self, *, limit: int | None = None, offset: int | None = None) -> Call[KeyPage]:
        """API keys, newest first, the revoked ones too.

        Needs the right access: admin.
        """
        return Call(
            method="GET",
            path="/api/v2/keys",
            answers={200: KeyPage},
            query={"limit": limit, "offset": offset},
        )

    @operation
    def read(self, key: str) -> Call[Key]:
        """One API key.

        Needs the right access: admin.
        """
        return Call(method="GET", path=address("/api/v2/keys/{key}", key=key), answers={200: Key})

    @operation
    def revoke(self, key: str) -> Call[Key]:
        """Revoke an API key: it is refused everywhere within seconds.

        Needs the right access: admin.
        """
        return Call(method="DELETE", path=address("/api/v2/keys/{key}", key=key), answers={200: Key})

    @operation
    def whoami(self) -> Call[Caller]:
        """Who the scheduler takes you for, and what you may do.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/whoami", answers={200: Caller})


class Access(AccessCalls, Group):
    """Access, at once."""


class AsyncAccess(AccessCalls, AsyncGroup):
    """Access, to be awaited."""
