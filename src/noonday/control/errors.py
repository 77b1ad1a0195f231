"""Ways in which a request comes too late, or a second time."""

from __future__ import annotations

from noonday.domain.errors import Conflict, NoondayError


class Outdated(Conflict):
    """The job was changed since it was read."""


class Gone(Conflict):
    """The attempt that this callback belongs to is over."""


class StillAnswering(Conflict):
    """The same request came before and is still being answered."""


class KeyReused(NoondayError):
    """An Idempotency-Key that belongs to another request."""
