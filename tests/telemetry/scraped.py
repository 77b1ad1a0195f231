"""Metrics as a scrape reads them: numbers by name and labels."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

PREFIX = "crawler_scheduler_"


class Scraped:
    def __init__(self, text: bytes, prefix: str = PREFIX) -> None:
        self.families = list(text_string_to_metric_families(text.decode()))
        self._prefix = prefix
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """None where there is no such sample."""
        return self.samples.get((self._prefix + name, frozenset(labels.items())))

    @property
    def names(self) -> dict[str, str]:
        """Kind by name, the namespace taken off, a counter with its ending."""
        endings = {"counter": "_total"}
        return {
            family.name.removeprefix(self._prefix) + endings.get(family.type, ""): family.type
            for family in self.families
        }
