"""What was due, what arrived, what the rows say, and what was done to the cluster meanwhile: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Seconds since 1970 everywhere: all clocks of a cluster under test are those of one machine.
FINAL: Final = frozenset({"completed", "failed", "cancelled", "skipped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A job and the due times it must answer for."""

    job: str
    dues: tuple[float, ...]
    # Reasons for which its policy lets a due time pass, near a fault; none for a job that must always run.
    may_skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request as the target saw it."""

    execution: str
    attempt: int
    job: str
    due: float
    at: float
    ended: float | None = None  # when the target was done with it; None while it still works
    status: int | None = None  # what it answered; None if it gave no answer

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    number: int
    outcome: str
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One execution as the service remembers it; a lapse stands for all due times up to `through`."""

    execution: str
    job: str
    due: float
    state: str
    through: float | None = None
    skip_reason: str | None = None
    tries: tuple[Try, ...] = ()

    def lost(self, attempt: int) -> Try | None:
        """The record that this attempt's lease was over, if there is one."""
        return next(
            (t for t in self.tries if t.number == attempt and t.outcome in ("lost", "released")), None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What was done, and how late it may make a fire: `within` after its due time or after `ended`."""

    name: str
    began: float
    ended: float  # when the outside world was whole again; for a kill the same moment
    within: float

    def touches(self, due: float) -> bool:
        """A fire just before may have been claimed and not sent when the fault came."""
        return self.began - 1.0 <= due <= self.ended + self.within

    def deadline(self, due: float) -> float:
        return max(due, self.ended) + self.within


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One look at all instances: who answered, and who of them says that it leads."""

    at: float
    answered: frozenset[str]
    leaders: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    watched: tuple[Watched, ...]
    arrivals: tuple[Arrival, ...]
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = ()
    polls: tuple[Poll, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    calm: float = 2.0  # lateness with no fault near
    early: float = 0.05
    orphan: float = 9.0  # lease and sweep: an attempt whose worker died starts again within this
    polls: float = 8.0  # how long after a fault the cluster may be without a leader
