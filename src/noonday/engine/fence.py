"""What every planning transaction asks first: is this still the leader's term?"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

Fence = Callable[[Connection], None]  # raises NotLeader in the transaction of a term that is over


def no_fence(conn: Connection) -> None:
    """Of one that plans alone, or beside others under the unique slot."""
