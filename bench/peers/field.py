"""The field: who is measured beside us, and what each of them keeps of a finished task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    module: str
    keeps: str
    settings: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    on_a_grid: bool = True  # are its fires due at fixed moments?
    takes_moments: bool = True  # may a task of its queue be due later?
    adds_a_second: float = 250.0  # tasks at the very least, also on a slow machine

    def given(self, **settings: str) -> Peer:
        return replace(self, settings={**self.settings, **settings})

    @property
    def family(self) -> str:
        """The word by which it is chosen on the command line."""
        return self.name.partition(",")[0].partition(" ")[0].lower()


def _queue(name: str, module: str, keeps: str, **settings: str) -> Peer:
    return Peer(name=name, module=f"bench.peers.queues.{module}", keeps=keeps, settings=settings)


def _clock(name: str, module: str, keeps: str, **settings: str) -> Peer:
    return Peer(name=name, module=f"bench.peers.clocks.{module}", keeps=keeps, settings=settings)


_BULK = 1000.0  # many at once
_ROADS = {
    "noonday, PostgreSQL": ("full history in PostgreSQL", {}),
    "noonday, streams": ("full history in PostgreSQL", {"BENCH_STREAMS": "1"}),
    "noonday, SQLite": ("full history in SQLite", {"BENCH_SQLITE": "1"}),
}


def _ours(folder: str) -> tuple[Peer, ...]:
    return tuple(
        Peer(
            name=name,
            module=f"bench.peers.{folder}.on_noonday",
            keeps=keeps,
            settings=settings,
            ours=True,
            adds_a_second=_BULK,
        )
        for name, (keeps, settings) in _ROADS.items()
    )


OUR_QUEUES = _ours("queues")
OUR_CLOCKS = _ours("clocks")

QUEUES = (
    replace(_queue("pgqueuer", "on_pgqueuer", "log rows in PostgreSQL"), adds_a_second=_BULK),
    replace(_queue("taskiq", "on_taskiq", "nothing"), takes_moments=False),
    replace(_queue("taskiq, results", "on_taskiq", "Redis keys", BENCH_RESULTS="1"), takes_moments=False),
    _queue("dramatiq", "on_dramatiq", "nothing"),
    _queue("dramatiq, results", "on_dramatiq", "Redis keys", BENCH_RESULTS="1"),
    _queue("huey", "on_huey", "Redis keys"),
    _queue("saq", "on_saq", "Redis keys"),
    _queue("celery", "on_celery", "nothing"),
    _queue("celery, results", "on_celery", "rows in PostgreSQL", BENCH_RESULTS="1"),
    _queue("rq", "on_rq", "Redis keys"),
    replace(_queue("procrastinate", "on_procrastinate", "rows in PostgreSQL"), adds_a_second=_BULK),
)

CLOCKS = (
    _clock("APScheduler, memory", "on_apscheduler", "nothing"),
    _clock("APScheduler, PostgreSQL", "on_apscheduler", "the next time only", BENCH_STORE="postgres"),
    replace(_clock("celery beat", "on_celery_beat", "nothing"), on_a_grid=False),
)

FAMILIES = tuple(dict.fromkeys(one.family for one in (*QUEUES, *CLOCKS)))


def chosen(peers: tuple[Peer, ...], families: frozenset[str]) -> tuple[Peer, ...]:
    return tuple(one for one in peers if one.family in families)
