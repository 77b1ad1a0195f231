"""Figures: who was measured at what, the values of each round, and their medians."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bench.peers.field import Peer
from bench.peers.stage import NoResult

Role = Literal["ours", "peer", "limit"]
Values = Mapping[str, float]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something that can be measured again and again."""

    section: str
    case: str  # what is compared with each other has the same section and case
    name: str
    role: Role
    take: Callable[[], Values]  # raises NoResult
    keeps: str = ""
    beside: str = "noonday, PostgreSQL"  # which of ours it is compared with

    @classmethod
    def of(cls, section: str, case: str, peer: Peer, take: Callable[[], Values]) -> Subject:
        role: Role = "ours" if peer.ours else "peer"
        return cls(section=section, case=case, name=peer.name, role=role, keeps=peer.keeps, take=take)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    section: str
    case: str
    name: str
    role: Role
    keeps: str = ""
    beside: str = "noonday, PostgreSQL"
    rounds: Sequence[Values] = field(default_factory=tuple)
    trouble: str | None = None  # why there is no value

    @property
    def values(self) -> dict[str, float]:
        """The median of each value over the rounds."""
        names = dict.fromkeys(name for one in self.rounds for name in one)
        return {name: statistics.median(one[name] for one in self.rounds if name in one) for name in names}


@dataclass(frozen=True, slots=True)
class Measure:
    """The value by which a section is compared."""

    value: str
    more_is_better: bool


MEASURES: Mapping[str, Measure] = {
    "limits": Measure("per_second", True),
    "drain": Measure("per_second", True),
    "burst": Measure("last_started_s", False),
    "fires": Measure("p99_ms", False),
    "adding": Measure("per_second", True),
    "http": Measure("per_second", True),
    "start": Measure("first_fire_s", False),
    "idle": Measure("cpu_share", False),
    "pages": Measure("full_ms", False),
}


def alternately(subjects: Sequence[Subject], rounds: int, tell: Tell) -> list[Figure]:
    """Each of them once in every round, so that whatever else the machine does meets all of them."""
    found: dict[int, list[Values]] = {place: [] for place in range(len(subjects))}
    trouble: dict[int, str] = {}
    for number in range(1, rounds + 1):
        for place, one in enumerate(subjects):
            if place in trouble:
                continue
            tell(f"round {number} of {rounds}: {one.section}, {one.case}: {one.name}")
            try:
                found[place].append(one.take())
            except NoResult as exc:
                trouble[place] = str(exc)
            except Exception as exc:  # the others go on
                trouble[place] = repr(exc)
            if place in trouble:
                tell(f"  {trouble[place]}")
    return [
        Figure(
            section=one.section,
            case=one.case,
            name=one.name,
            role=one.role,
            keeps=one.keeps,
            beside=one.beside,
            rounds=tuple(found[place]),
            trouble=trouble.get(place),
        )
        for place, one in enumerate(subjects)
    ]


def ratio(ours: Figure, other: Figure) -> float | None:
    """How many times as good ours is as the other: more than 1 is better."""
    measure = MEASURES[ours.section]
    mine, theirs = ours.values.get(measure.value), other.values.get(measure.value)
    if not mine or not theirs or mine < 0 or theirs < 0:
        return None
    return mine / theirs if measure.more_is_better else theirs / mine


def find(figures: Iterable[Figure], section: str, name: str, case: str | None = None) -> Figure | None:
    """The one that was really measured."""
    for one in figures:
        if (one.section, one.name) == (section, name) and case in (None, one.case) and one.rounds:
            return one
    return None
