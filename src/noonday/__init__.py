"""Noonday: a job scheduler that fires on time, loses nothing and says why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noonday.domain.errors import LockLost
    from noonday.instance.embedding import Scheduler
    from noonday.leadership.lock import Lock
    from noonday.leadership.locks import Locks
    from noonday.targets.tasks import task

    __version__: str

__all__ = ["Lock", "LockLost", "Locks", "Scheduler", "__version__", "task"]

# Loaded when asked for: whoever needs one part of the package does not pay for all of it.
_PLACES = {
    "Lock": "noonday.leadership.lock",
    "LockLost": "noonday.domain.errors",
    "Locks": "noonday.leadership.locks",
    "Scheduler": "noonday.instance.embedding",
    "task": "noonday.targets.tasks",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("noonday")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
