"""The report of a run: tables with ratios for people, and everything as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import MEASURES, Figure, find, ratio
from bench.goals import goals
from bench.plot import plot

TITLES: Mapping[str, str] = {
    "limits": "Limits of the machine",
    "drain": "Drain: tasks a second",
    "burst": "Burst: seconds until the last has started",
    "fires": "Punctuality: milliseconds from due to started",
    "adding": "Adding schedules",
    "http": "HTTP targets",
    "start": "Start: seconds from the start of the process to the first fire",
    "idle": "Idle: share of one core",
    "pages": "Pages, in the processor's time",
}
_COLUMNS: Mapping[str, tuple[str, str]] = {  # value: heading and format
    "per_second": ("per second", "{:,.0f}"),
    "durable_per_second": ("ended per second", "{:,.0f}"),
    "enqueued_per_second": ("added per second", "{:,.0f}"),
    "last_started_s": ("last started, s", "{:.2f}"),
    "first_started_s": ("first, s", "{:.2f}"),
    "p50_ms": ("p50 ms", "{:,.1f}"),
    "p99_ms": ("p99 ms", "{:,.1f}"),
    "max_ms": ("max ms", "{:,.1f}"),
    "fired": ("fired", "{:.1%}"),
    "early": ("early", "{:,.0f}"),
    "took_s": ("took, s", "{:.2f}"),
    "first_fire_s": ("first fire, s", "{:.2f}"),
    "full_ms": ("full, ms", "{:,.1f}"),
    "empty_ms": ("empty, ms", "{:,.1f}"),
    "first_ms": ("first look, ms", "{:,.1f}"),
    "ratio": ("full / empty", "{:.1f}"),
    "cpu_us": ("CPU µs each", "{:,.0f}"),
    "cpu_share": ("CPU share", "{:.2%}"),
    "memory_mb": ("peak MB", "{:,.0f}"),
}
_HOW = (
    "Medians of rounds, of which there were {rounds}. In each round everybody has one turn, one after the "
    "other, on the same servers. “noonday is” says how many times as good ours is, the one named behind it: "
    "more than 1 is better; beside a limit it is the share of it that ours reaches."
)
_NONE = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured, on what."""

    at: str
    machine: Mapping[str, str]
    rounds: int
    figures: Sequence[Figure] = field(default_factory=tuple)


def markdown(run: Run, picture: str | None = None) -> str:
    return "\n".join(_lines(run, picture)) + "\n"


def _lines(run: Run, picture: str | None) -> Iterator[str]:
    yield f"# Measured on {run.at}"
    yield ""
    yield from (f"- {name}: {words}" for name, words in run.machine.items())
    yield ""
    yield _HOW.format(rounds=run.rounds)
    if picture is not None:
        yield from ("", f"![The figures as bars]({picture})")
    for section in TITLES:
        cases = dict.fromkeys(one.case for one in run.figures if one.section == section)
        if cases:
            yield from ("", f"## {TITLES[section]}")
        for case in cases:
            yield from ("", f"### {case}", "")
            yield from _table([one for one in run.figures if (one.section, one.case) == (section, case)])
    if wanted := goals(run.figures):
        yield from ("", "## What is wanted, and what was found", "")
        rows = [[one.words, one.wanted, one.found, "yes" if one.met else "no"] for one in wanted]
        yield from aligned(["", "wanted", "found", "met"], rows)
    spread = list(_spread(run.figures))
    if spread:
        yield from ("", "## How much the rounds differ", "")
        yield from aligned(["", "least", "median", "most"], spread)


def _table(figures: Sequence[Figure]) -> Iterator[str]:
    values = [name for name in _COLUMNS if any(name in one.values for one in figures)]
    compared = any(one.role != "ours" for one in figures) and any(one.role == "ours" for one in figures)
    head = ["", *(_COLUMNS[name][0] for name in values)]
    head += ["noonday is"] if compared else []
    head += ["keeps"] if any(one.keeps for one in figures) else []
    rows = []
    for one in figures:
        row = [one.name, *(_cell(one, name) for name in values)]
        row += [_beside(one, figures)] if compared else []
        row += [one.trouble or one.keeps] if "keeps" in head else []
        rows.append(row)
    yield from aligned(head, rows)


def _cell(figure: Figure, name: str) -> str:
    value = figure.values.get(name)
    return _NONE if value is None else _COLUMNS[name][1].format(value)


def _beside(figure: Figure, figures: Sequence[Figure]) -> str:
    if figure.role == "ours":
        return ""
    ours = find(figures, figure.section, figure.beside, figure.case)
    times = None if ours is None else ratio(ours, figure)
    if times is None:
        return _NONE
    which = figure.beside.partition(", ")[2]
    return f"{times:.2f} times ({which})"


def _spread(figures: Sequence[Figure]) -> Iterator[list[str]]:
    for one in figures:
        value = MEASURES[one.section].value
        seen = [values[value] for values in one.rounds if value in values]
        if len(seen) > 1:
            form = _COLUMNS[value][1]
            name = f"{one.section}, {one.case}: {one.name}, {_COLUMNS[value][0]}"
            yield [name, form.format(min(seen)), form.format(one.values[value]), form.format(max(seen))]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table that is readable in a terminal too; columns of numbers lean right."""
    clean = [[cell.replace("|", "/").replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *clean, strict=True)]
    right = [all(_numeric(row[place]) for row in clean) for place in range(len(head))]
    right[0] = False

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if leans else cell.ljust(width)
            for cell, width, leans in zip(cells, widths, right, strict=True)
        )
        return "| " + " | ".join(padded) + " |"

    yield line(head)
    yield (
        "|"
        + "|".join(
            "-" * (width + 1) + ":" if leans else "-" * (width + 2)
            for width, leans in zip(widths, right, strict=True)
        )
        + "|"
    )
    yield from map(line, clean)


def _numeric(cell: str) -> bool:
    return not cell or cell[0] in "0123456789-" or cell[:2] in {"≥ ", "≤ "}


def as_json(run: Run) -> dict[str, Any]:
    """`values` are the medians; a figure that could not be taken has a `trouble` and no values."""
    figures = []
    for one in run.figures:
        ours = find(run.figures, one.section, one.beside, one.case)
        times = None if one.role == "ours" or ours is None else ratio(ours, one)
        figures.append({**asdict(one), "values": one.values, "ours_beside_it": times})
    return {
        "at": run.at,
        "machine": dict(run.machine),
        "rounds": run.rounds,
        "figures": figures,
        "goals": [asdict(one) for one in goals(run.figures)],
    }


def write(run: Run, folder: Path, name: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plot(run.figures)
    page, data, picture = (folder / f"{name}{end}" for end in (".md", ".json", ".svg"))
    written = [page, data]
    if drawn is not None:
        picture.write_text(drawn, encoding="utf-8")
        written.append(picture)
    page.write_text(markdown(run, picture.name if drawn is not None else None), encoding="utf-8")
    data.write_text(json.dumps(as_json(run), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return written
