"""The strip of a job's last runs as SVG: height says how long, shape and colour say how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from markupsafe import Markup

from noonday.control.listing import Bar
from noonday.domain.execution import ExecutionState
from noonday.web import words

__all__ = ["strip"]

_WIDE, _STEP, _TALL = 4, 6, 24
_LOW: Final = 4  # what took no time can still be seen
_RUNS: Final = 30
_COLOURS: Final[Mapping[ExecutionState, str]] = {
    ExecutionState.COMPLETED: "good",
    ExecutionState.FAILED: "bad",
    ExecutionState.CANCELLED: "off",
    ExecutionState.SKIPPED: "held",
    ExecutionState.RUNNING: "running",
}


def strip(bars: Sequence[Bar], runs: int = _RUNS) -> Markup:
    """One path for each result: small enough for fifty of them on a page."""
    if not bars:
        return Markup('<span class="none">no runs yet</span>')
    longest = _tallest([bar.took for bar in bars if bar.took])
    paths: dict[str, list[str]] = {}
    for place, bar in enumerate(bars, runs - len(bars)):
        paths.setdefault(_COLOURS[bar.state], []).append(_shape(bar, place * _STEP, longest))
    drawn = Markup().join(
        Markup('<path class="{}" d="{}"/>').format(colour, "".join(shapes))
        for colour, shapes in paths.items()
    )
    return Markup('<svg class="strip" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        runs * _STEP, _TALL, _told(bars), drawn
    )


def _tallest(times: list[timedelta]) -> timedelta:
    """What fills the height. One that took far longer than is usual must not flatten all others."""
    if not times:
        return timedelta()
    return min(max(times), 3 * sorted(times)[len(times) // 2])


def _shape(bar: Bar, x: int, longest: timedelta) -> str:
    share = min(bar.took / longest, 1) if bar.took and longest else 0
    height = _LOW + round(share * (_TALL - _LOW - 6))
    top = _TALL - height
    match bar.state:
        case ExecutionState.SKIPPED:  # a small triangle on the ground
            return f"M{x} {_TALL}h{_WIDE}l-2 -5z"
        case ExecutionState.FAILED:  # a bar under a cross, cut apart from it
            return f"M{x} {top}h{_WIDE}V{_TALL}h-{_WIDE}z" + _cross(x, top - 6)
        case ExecutionState.CANCELLED:  # a square
            return f"M{x} {_TALL}v-{_WIDE}h{_WIDE}v{_WIDE}z"
        case ExecutionState.RUNNING:  # a frame
            return f"M{x} {_TALL}V6h{_WIDE}V{_TALL}zM{x + 1} 7v{_TALL - 8}h{_WIDE - 2}v-{_TALL - 8}z"
        case _:
            return f"M{x} {top}h{_WIDE}V{_TALL}h-{_WIDE}z"


def _cross(x: int, y: int) -> str:
    return f"M{x} {y}l2 1.3l2 -1.3v1.4l-1.1 .9l1.1 .9v1.5l-2 -1.4l-2 1.4v-1.5l1.1 -.9l-1.1 -.9z"


def _told(bars: Sequence[Bar]) -> str:
    counts = Counter(bar.state.value for bar in bars)
    ends = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    times = sorted(bar.took for bar in bars if bar.took is not None)
    spans = f"; took {words.span(times[0])} to {words.span(times[-1])}" if times else ""
    return f"last {len(bars)}: {ends}{spans}"
