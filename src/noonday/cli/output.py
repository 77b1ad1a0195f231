"""How the CLI speaks: data on stdout, words on stderr, tables for people and JSON for programs."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = [
    "SIGNS",
    "ago",
    "clean",
    "compact",
    "data",
    "pairs",
    "say",
    "span",
    "state",
    "table",
    "time",
    "title",
]

SIGNS = {  # a shape and a colour for each word, so that none of the three is needed alone
    "pending": ("◌", "yellow"),
    "queued": ("○", "blue"),
    "scheduled": ("○", "blue"),
    "running": ("◐", "cyan"),
    "completed": ("●", "green"),
    "failed": ("✕", "red"),
    "skipped": ("▲", "yellow"),
    "paused": ("■", "yellow"),
    "closed": ("●", "green"),
    "open": ("✕", "red"),
    "half_open": ("◐", "yellow"),
    "disabled": ("■", "bright_black"),
    "cancelled": ("■", "bright_black"),
    "draining": ("◑", "yellow"),
    "drained": ("■", "yellow"),
    "silent": ("✕", "red"),
}
_WIDE = 220  # where nobody watches, cutting cells to 80 columns would only lose data


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """rich would end the process with 1 here; a reader that has read enough is no failure."""
        raise BrokenPipeError


def _console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return _Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def say(*lines: str) -> None:
    """Words for a person, on stderr."""
    console = _console(stderr=True)
    for line in lines:
        console.print(clean(line), soft_wrap=True)


def data(value: Any) -> None:
    """The one JSON document of a command, on stdout."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    print(json.dumps(value, indent=2, ensure_ascii=encoding != "utf8", default=str))


def compact(value: Any) -> str:
    """JSON on one line, for a cell of a table."""
    return json.dumps(value, ensure_ascii=False, default=str)


def title(text: str) -> None:
    _console().print(Text(clean(text), style="bold"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Columns whose name starts with `#` hold numbers and lean right."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith("#")
        grid.add_column(column.removeprefix("#"), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else clean(cell) for cell in row))
    _draw(grid)


def pairs(rows: Iterable[tuple[str, str | Text]]) -> None:
    """Facts of one thing, one per line."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value if isinstance(value, Text) else clean(value))
    _draw(grid)


def _draw(grid: Table) -> None:
    console = _console()
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as drawn:
        console.print(grid)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def state(word: str) -> Text:
    sign, colour = SIGNS.get(word, ("·", "default"))
    return Text(f"{sign} {word}", style=colour)


def time(instant: datetime | None, *, utc: bool = False) -> str:
    if instant is None:
        return "-"
    shown = instant.astimezone(UTC) if utc else instant.astimezone()
    return f"{shown:%Y-%m-%d %H:%M:%S} {shown.tzname()}"


def span(length: timedelta | None) -> str:
    """A duration at the precision a person wants: 12 ms, 3.4 s, 5 min 12 s, 2 h 5 min, 3 d 4 h."""
    if length is None:
        return "-"
    secs = abs(length.total_seconds())
    if secs < 1:
        return f"{secs * 1000:.0f} ms"
    if secs < 60:
        return f"{secs:.1f} s"
    if secs < 3600:
        return _two(int(secs), (60, "min"), (1, "s"))
    if secs < 86400:
        return _two(int(secs), (3600, "h"), (60, "min"))
    return _two(int(secs), (86400, "d"), (3600, "h"))


def _two(secs: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    whole, rest = divmod(secs, large[0])
    part = rest // small[0]
    return f"{whole} {large[1]} {part} {small[1]}" if part else f"{whole} {large[1]}"


def ago(instant: datetime, now: datetime) -> str:
    return f"in {span(instant - now)}" if instant > now else f"{span(now - instant)} ago"


def clean(text: str) -> str:
    """Without control characters: what a job printed must not steer the reader's terminal."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in {"Cc", "Cf"} else "�" for c in text)
