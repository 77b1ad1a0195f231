"""The checker's figures as a table for people."""

from __future__ import annotations

from tests.cluster.checker import Figures, Report

_HEAD = ("fault", "due", "skipped", "redelivered", "p50", "p99", "max")


def table(report: Report) -> str:
    lines = [_HEAD, *(_line(name, figures) for name, figures in report.figures.items())]
    total = Figures()
    for figures in report.figures.values():
        total.due += figures.due
        total.skipped += figures.skipped
        total.redelivered += figures.redelivered
        total.lateness += figures.lateness
    lines.append(_line("all", total))
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    shown = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines]
    counts: dict[str, int] = {}
    for violation in report.violations:
        counts[violation.kind] = counts.get(violation.kind, 0) + 1
    words = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    return "\n".join(line.rstrip() for line in shown) + f"\nviolations: {words or 'none'}"


def _line(name: str, figures: Figures) -> tuple[str, ...]:
    spread = (figures.quantile(0.5), figures.quantile(0.99), max(figures.lateness, default=0.0))
    return (
        name,
        str(figures.due),
        str(figures.skipped),
        str(figures.redelivered),
        *(f"{seconds:.3f} s" for seconds in spread),
    )
