"""The hands: each kind of target is run here, cancellable and bounded, and its end told as an Outcome.

Names are loaded when they are asked for: a task's own process needs `tasks` alone and starts faster so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noonday.targets.checks import check_target
    from noonday.targets.config import TargetsConfig
    from noonday.targets.dispatch import Targets
    from noonday.targets.network import NetworkPolicy, check_url
    from noonday.targets.signing import callback_token, check_callback_token
    from noonday.targets.tasks import TaskRegistry

__all__ = [
    "NetworkPolicy",
    "Targets",
    "TargetsConfig",
    "TaskRegistry",
    "callback_token",
    "check_callback_token",
    "check_target",
    "check_url",
]

_PLACES = {
    "NetworkPolicy": "network",
    "Targets": "dispatch",
    "TargetsConfig": "config",
    "TaskRegistry": "tasks",
    "callback_token": "signing",
    "check_callback_token": "signing",
    "check_target": "checks",
    "check_url": "network",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
