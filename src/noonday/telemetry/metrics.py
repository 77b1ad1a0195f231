"""Prometheus metrics under the names that dashboards of the first scheduler know."""

from __future__ import annotations

from noonday.ports import Silence


class Metrics(Silence):
    def __init__(self, namespace: str) -> None: ...

    def render(self) -> bytes:
        """The text that a scrape reads."""
        return b""
