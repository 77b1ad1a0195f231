"""Two ways in which a request comes too late."""

from __future__ import annotations

from noonday.domain.errors import Conflict


class Outdated(Conflict):
    """The job was changed since it was read."""


class Gone(Conflict):
    """The attempt that this callback belongs to is over."""
