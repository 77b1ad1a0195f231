"""The names of time zones, for lists to choose from."""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import available_timezones

__all__ = ["zone_names"]


@lru_cache
def zone_names() -> tuple[str, ...]:
    """Those that people use: places, and UTC first."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ("UTC", *sorted(places))
