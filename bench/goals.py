"""What is wanted of the scheduler, and whether the figures of this run show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import drain
from bench.figures import Figure, find, ratio

POSTGRES, SQLITE = "noonday, PostgreSQL", "noonday, SQLite"
_LIMIT = "limit, {} by 1,000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    words: str
    wanted: str
    found: str
    met: bool


def goals(figures: Sequence[Figure]) -> list[Goal]:
    """Only those for which something was measured."""
    return [
        *_throughput(figures),
        *_punctuality(figures),
        *_scale(figures),
        *_cost(figures),
    ]


def _throughput(figures: Sequence[Figure]) -> Iterator[Goal]:
    ours = find(figures, "drain", POSTGRES, drain.WAITING)
    for one in figures if ours is not None else ():
        if (one.section, one.case, one.role) == ("drain", drain.WAITING, "peer") and one.rounds:
            least = 1.0 if one.name == "pgqueuer" else 3.0
            yield from _at_least(f"drain beside {one.name}", ratio(ours, one) if ours else None, least)
    for name, database, least in ((POSTGRES, "PostgreSQL", 0.6), (SQLITE, "SQLite", 0.4)):
        mine = find(figures, "drain", name, drain.WAITING)
        limit = find(figures, "drain", _LIMIT.format(database), drain.WAITING)
        if mine and limit:
            yield from _at_least(f"drain beside the limit of {database}", ratio(mine, limit), least)


def _punctuality(figures: Sequence[Figure]) -> Iterator[Goal]:
    bounds = {"1,000 a second": {"p50_ms": 3.0, "p99_ms": 10.0}, "5,000 a second": {"p99_ms": 50.0}}
    for one in figures:
        if one.role != "ours" or one.section != "fires" or not one.rounds:
            continue
        where = f"{one.name}, {one.case}"
        yield from _at_least(f"{where}: fired", one.values["fired"], 1.0)
        yield from _at_most(f"{where}: early", one.values["early"], 0.0)
        for value, most in bounds.get(one.case.partition(", ")[0], {}).items():
            yield from _at_most(f"{where}: {value[:3]} in ms", one.values[value], most)
    for one in figures:
        if one.role == "ours" and one.section == "burst" and one.case.startswith("10,000 ") and one.rounds:
            yield from _at_most(f"{one.name}, {one.case}: seconds", one.values["last_started_s"], 1.0)


def _scale(figures: Sequence[Figure]) -> Iterator[Goal]:
    for one in figures:
        if one.role != "ours" or not one.rounds:
            continue
        if one.section == "start":
            yield from _at_most(
                f"{one.name}, start with {one.case}: seconds", one.values["first_fire_s"], 3.0
            )
        if one.section == "adding" and one.case == "10,000 at once":
            yield from _at_most(f"{one.name}, adding {one.case}: seconds", one.values["took_s"], 5.0)
    yield from _unchanged(figures)
    yield from _after_years(figures)
    for name in (POSTGRES, SQLITE):
        few, many = (find(figures, "start", name, f"{n:,} stored") for n in (1000, 1_000_000))
        if few and many:
            more = many.values["memory_mb"] / few.values["memory_mb"]
            yield from _at_most(f"{name}, memory with 1,000,000 beside 1,000 stored", more, 1.3)


def _unchanged(figures: Sequence[Figure]) -> Iterator[Goal]:
    """The same measure with the fewest and with the most schedules stored, in the order of the run."""
    same: dict[tuple[str, str, str], list[Figure]] = {}
    for one in figures:
        what, _, much = one.case.rpartition(", ")
        if one.role == "ours" and one.rounds and what and much.endswith(" stored"):
            same.setdefault((one.section, one.name, what), []).append(one)
    for (_, name, what), found in same.items():
        if len(found) > 1:
            words = f"{name}, {what}: {found[-1].case.rpartition(', ')[2]} beside the fewest"
            yield from _at_most(words, ratio(found[0], found[-1]), 1.5)


def _after_years(figures: Sequence[Figure]) -> Iterator[Goal]:
    """The same measure with nothing and with a long history behind it."""
    for one in figures:
        what, _, much = one.case.rpartition(", ")
        before = find(figures, one.section, one.name, what)
        if one.role == "ours" and one.rounds and much.endswith(" past") and before:
            yield from _at_most(f"{one.name}, {what}: {much} beside none", ratio(before, one), 1.5)


def _cost(figures: Sequence[Figure]) -> Iterator[Goal]:
    for one in figures:
        if one.role == "ours" and one.section == "idle" and one.rounds:
            yield from _at_most(f"{one.name}, idle: percent of a core", one.values["cpu_share"] * 100, 1.0)
            yield from _at_most(f"{one.name}, idle: megabytes", one.values["memory_mb"], 120.0)
    ours, limit = find(figures, "http", POSTGRES), find(figures, "http", "limit, aiohttp's client")
    if ours and limit:
        share, rate = ratio(ours, limit), ours.values["per_second"]
        found = f"{rate:,.0f}/s, {share or 0:.2f} of the client"
        met = rate >= 3000 or (share or 0) >= 0.7
        yield Goal(words="HTTP targets", wanted="3,000/s or 0.7 of the client", found=found, met=met)


def _at_least(words: str, found: float | None, least: float) -> Iterator[Goal]:
    if found is not None:
        yield Goal(words=words, wanted=f"≥ {least:g}", found=_short(found), met=found >= least - 1e-9)


def _at_most(words: str, found: float | None, most: float) -> Iterator[Goal]:
    if found is not None:
        yield Goal(words=words, wanted=f"≤ {most:g}", found=_short(found), met=found <= most + 1e-9)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
