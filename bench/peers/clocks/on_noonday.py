"""Noonday as a scheduler: every fire planned, claimed and settled in the database."""

from __future__ import annotations

from datetime import timedelta

from bench.peers import ours
from bench.peers.shape import INTERVAL, SCHEDULES, first_due
from noonday.cli.benching import filling


def setup() -> None:
    ours.fresh()
    every = timedelta(seconds=INTERVAL)
    ours.store(filling.recurring(ours.KIND, ours.at(first_due(n)), every) for n in range(SCHEDULES))


def processes() -> dict[str, list[str]]:
    return {"scheduler": ours.command()}
