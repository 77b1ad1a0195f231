"""The figures as bars in one SVG: ours in colour, peers plain, limits as an outline; for light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench import drain
from bench.figures import Figure

_WIDTH = 880
_LEFT = 230  # of the bars
_RIGHT = 160  # room for the number behind the longest bar
_ROW = 24
_BAR = 14
_HEAD = 52
_GAP = 24
_STYLE = """
  svg { color-scheme: light dark; }
  .ground { fill: #ffffff; }
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .note { fill: #59636e; font-size: 12px; }
  .ours { fill: #b35900; }
  .peer { fill: #8c959f; }
  .limit { fill: none; stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 4 3; }
  .line { stroke: #d1d9e0; stroke-width: 1; }
  .mine { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; }
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    .ours { fill: #ffa657; }
    .peer { fill: #6e7681; }
    .limit { stroke: #9198a1; }
    .line { stroke: #3d444d; }
  }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Rows of one value. On a scale of logarithms a bar begins at the power of ten below the least."""

    title: str
    note: str
    value: str
    form: str
    rows: Sequence[Figure]
    logarithmic: bool = False

    @property
    def height(self) -> int:
        return _HEAD + _ROW * len(self.rows) + _GAP

    def length(self, value: float) -> float:
        """The share of the longest bar."""
        values = [one.values[self.value] for one in self.rows]
        most = max(values)
        if most <= 0 or value <= 0:
            return 0.0
        if not self.logarithmic:
            return value / most
        floor = math.floor(math.log10(min(one for one in values if one > 0)))
        return (math.log10(value) - floor) / max(1e-9, math.log10(most) - floor)


def plot(figures: Sequence[Figure]) -> str | None:
    """None where there is nothing to draw."""
    panels = list(_panels(figures))
    if not panels:
        return None
    height = sum(panel.height for panel in panels) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" role="img" aria-labelledby="title">',
        '<title id="title">Noonday beside other schedulers and queues</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height}" rx="8"/>',
    ]
    top = _GAP
    for panel in panels:
        lines += _drawn(panel, top)
        top += panel.height
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panels(figures: Sequence[Figure]) -> Iterator[Panel]:
    yield from _panel(
        figures, "drain", drain.WAITING, "per_second", "Drain", "tasks a second, more is better", "{:,.0f}"
    )
    for case in _cases(figures, "burst")[:1]:
        note = f"seconds until the last of {case.partition(', ')[0]} has started, less is better"
        yield from _panel(figures, "burst", case, "last_started_s", "Burst", note, "{:,.2f} s", log=True)
    for case in _cases(figures, "fires"):
        note = f"{case}; from due to started, of 100 fires 99 are as punctual or more, less is better"
        yield from _panel(figures, "fires", case, "p99_ms", "Punctuality", note, "{:,.1f} ms", log=True)


def _cases(figures: Sequence[Figure], section: str) -> list[str]:
    return list(dict.fromkeys(one.case for one in figures if one.section == section))


def _panel(
    figures: Sequence[Figure],
    section: str,
    case: str,
    value: str,
    title: str,
    note: str,
    form: str,
    log: bool = False,
) -> Iterator[Panel]:
    rows = [one for one in figures if (one.section, one.case) == (section, case) and value in one.values]
    if rows:
        rows.sort(key=lambda one: one.values[value], reverse=section == "drain")
        yield Panel(title=title, note=note, value=value, form=form, rows=rows, logarithmic=log)


def _unfired(figure: Figure) -> str:
    fired = figure.values.get("fired", 1.0)
    return "" if fired > 0.995 else f", {fired:.0%} fired"


def _drawn(panel: Panel, top: int) -> Iterator[str]:
    yield f'<text class="title" x="24" y="{top + 8}">{escape(panel.title)}</text>'
    scale = "; logarithmic scale" if panel.logarithmic else ""
    yield f'<text class="note" x="24" y="{top + 28}">{escape(panel.note + scale)}</text>'
    bottom = top + _HEAD + _ROW * len(panel.rows) - 4
    yield f'<line class="line" x1="{_LEFT}" y1="{top + _HEAD - 12}" x2="{_LEFT}" y2="{bottom}"/>'
    for place, one in enumerate(panel.rows):
        value = one.values[panel.value]
        words = escape(panel.form.format(value) + _unfired(one))
        length = max(2.0, panel.length(value) * (_WIDTH - _LEFT - _RIGHT))
        y = top + _HEAD + _ROW * place
        mine = ' class="mine"' if one.role == "ours" else ""
        name = escape(one.name)
        yield f'<text{mine} x="{_LEFT - 10}" y="{y + 3}" text-anchor="end">{name}</text>'
        yield (
            f'<rect class="{one.role}" x="{_LEFT}" y="{y - _BAR / 2 - 2:g}" width="{length:.1f}"'
            f' height="{_BAR}" rx="2"><title>{name}: {words}</title></rect>'
        )
        yield f'<text{mine} x="{_LEFT + length + 8:.1f}" y="{y + 3}">{words}</text>'
