"""Tables for people, on stdout. Apart from `output`, for a process that serves draws none."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from noonday.cli.output import clean

__all__ = ["SIGNS", "pairs", "state", "table", "title"]

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


def _console() -> Console:
    width = None if sys.stdout.isatty() else _WIDE
    return _Console(width=width, markup=False, highlight=False, emoji=False)


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
