"""What somebody has chosen to measure, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers.field import FAMILIES

SECTIONS = ("limits", "drain", "burst", "fires", "adding", "http", "start", "idle", "pages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    sections: tuple[str, ...] = SECTIONS
    families: frozenset[str] = frozenset(FAMILIES)
    rounds: int = 3
    count: int = 20_000  # tasks of a drain
    workers: int = 1  # processes of a drain
    burst: int = 10_000
    rates: tuple[int, ...] = (50, 1000, 5000)
    seconds: int = 10  # of each rate
    stored: tuple[int, ...] = (1000,)  # schedules, for fires and burst
    past: int = 0  # rows of history that ours has behind it in a further case of drain and fires
    added: int = 1000  # one by one
    added_at_once: int = 10_000
    calls: int = 5000
    started_with: tuple[int, ...] = (1000, 1_000_000)
    idle_seconds: int = 20
    pages: tuple[tuple[int, int], ...] = ((10_000, 1_000_000), (1_000_000, 0))  # jobs and rows of history


QUICK = Choice(
    rounds=1,
    count=1000,
    burst=500,
    rates=(50, 200),
    seconds=3,
    added=50,
    added_at_once=400,
    calls=500,
    started_with=(1000,),
    idle_seconds=5,
    pages=((200, 2000),),
)
