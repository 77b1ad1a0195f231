"""Times, spans, counts and states as people read them; never a time without its zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

__all__ = ["STATES", "ago", "count", "moment", "span", "state", "time"]

DASH: Final = "\N{EN DASH}"
_NOTHING: Final = Markup('<span class="none">{}</span>').format(DASH)
# word on the wire -> (icon of the sprite, word for people); colour follows the icon in kit.css
STATES: Final = {
    "scheduled": ("waiting", "scheduled"),
    "pending": ("waiting", "pending"),
    "queued": ("waiting", "queued"),
    "running": ("running", "running"),
    "completed": ("good", "completed"),
    "failed": ("bad", "failed"),
    "cancelled": ("off", "cancelled"),
    "paused": ("held", "paused"),
    "skipped": ("held", "skipped"),
    "disabled": ("off", "disabled"),
    # how an attempt ended, beside those above
    "timed_out": ("bad", "timed out"),
    "lost": ("bad", "lost"),
    "released": ("waiting", "handed back"),
    "parked": ("held", "parked"),
}


def time(at: datetime | None, zone: ZoneInfo) -> Markup:
    if at is None:
        return _NOTHING
    there = at.astimezone(zone)
    return Markup('<time datetime="{}" data-tz="{}">{}</time>').format(
        at.isoformat(), zone.key, there.strftime("%Y-%m-%d %H:%M:%S %Z")
    )


def ago(at: datetime | None, now: datetime, zone: ZoneInfo) -> Markup:
    """`in 5 min` or `3 h ago`, with the whole time behind it."""
    if at is None:
        return _NOTHING
    there = at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    away = at - now
    text = f"in {span(away)}" if away > timedelta() else f"{span(-away)} ago"
    return Markup('<time datetime="{}" data-tz="{}" data-relative title="{}">{}</time>').format(
        at.isoformat(), zone.key, there, text
    )


def moment(at: datetime, zone: ZoneInfo, now: datetime | None = None) -> str:
    """Within a sentence: `Tue 2027-01-05 07:00 CET`, and the time of day alone if it is the day of `now`."""
    there = at.astimezone(zone)
    clock = there.strftime("%H:%M:%S").removesuffix(":00") + there.strftime(" %Z")
    if now is not None and now.astimezone(zone).date() == there.date():
        return clock
    return f"{there:%a %Y-%m-%d} {clock}"


def span(value: timedelta | float | None) -> str:
    """Two units at most: `90 ms`, `12 s`, `3 min 20 s`, `5 h`, `2 d 4 h`."""
    if value is None:
        return DASH
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    whole = round(seconds)
    for size, unit, smaller, small in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def count(value: int) -> str:
    return f"{value:,}"


def state(word: str) -> Markup:
    """Shape, colour and word: none of them is needed to understand the other two."""
    icon, shown = STATES.get(word, ("off", word))
    return Markup(
        '<span class="state {0}"><svg aria-hidden="true"><use href="#i-{0}"/></svg>{1}</span>'
    ).format(icon, shown)
