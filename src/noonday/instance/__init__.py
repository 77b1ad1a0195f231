"""The composition root: settings become a process; one TaskGroup, one order of start and of shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noonday.instance.loading import loaded, loaded_without

if TYPE_CHECKING:
    from noonday.instance.embedding import Scheduler
    from noonday.instance.process import Instance, run_instance
    from noonday.instance.processes import run_processes

__all__ = ["Instance", "Scheduler", "run_instance", "run_processes"]

# An embedded scheduler needs no web server: it is loaded only by whoever asks for an instance.
_PLACES = {
    "Instance": "process",
    "Scheduler": "embedding",
    "run_instance": "process",
    "run_processes": "processes",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "Scheduler":  # a process of our own: its log lines have no tracebacks in colour
        loaded_without("rich", "structlog")
    return getattr(loaded(f"{__name__}.{_PLACES[name]}"), name)
