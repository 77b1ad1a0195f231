"""The pulse as a drawing: what went well above the line, what did not below it, what will come in outline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from noonday.control.overview import SLOT, Pulse, PulseSlot
from noonday.domain.execution import ExecutionState

__all__ = ["Bar", "Drawing", "Hour", "Label", "drawn"]

_UP: Final = 84.0  # pixels above the line, and below it
_DOWN: Final = 36.0
_LEAST: Final = 2.0  # so that one run among thousands is seen
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_ROOM: Final = timedelta(minutes=40)  # between two words below the bars, on a phone
_GOOD: Final = (
    ExecutionState.COMPLETED,
    ExecutionState.RUNNING,
    ExecutionState.QUEUED,
    ExecutionState.PENDING,
)
_NOT: Final = (ExecutionState.FAILED, ExecutionState.SKIPPED, ExecutionState.CANCELLED)
_LOOKS: Final[Mapping[ExecutionState, str]] = {
    ExecutionState.COMPLETED: "good",
    ExecutionState.RUNNING: "running",
    ExecutionState.QUEUED: "waiting",
    ExecutionState.PENDING: "waiting",
    ExecutionState.FAILED: "bad",
    ExecutionState.SKIPPED: "held",
    ExecutionState.CANCELLED: "off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a bar, in pixels from the top."""

    look: str  # the class of its colour
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A slot; `x` and `width` are shares of the whole width in percent."""

    x: float
    width: float
    pieces: tuple[Piece, ...]
    words: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    x: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """A row of the table beside the drawing."""

    at: datetime
    address: str
    counts: Mapping[str, int]
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    line: float  # where the bars begin
    height: float
    now: float  # in percent
    bars: tuple[Bar, ...]
    labels: tuple[Label, ...]
    hours: tuple[Hour, ...]
    words: str


def drawn(pulse: Pulse, zone: ZoneInfo) -> Drawing:
    slots = pulse.slots
    up, down = max(map(_well, slots)), max(map(_badly, slots))
    scale = min(_UP / max(up, 1.0), _DOWN / max(down, 1.0))
    since, whole = slots[0].at, SLOT * len(slots)
    hours = tuple(_hours(slots))
    return Drawing(
        line=_UP,
        height=_UP + _DOWN,
        now=_share(pulse.now - since, whole),
        bars=tuple(_bars(slots, scale, zone)),
        labels=tuple(_labels(slots, zone, pulse.now)),
        hours=hours,
        words=_summary(hours, estimated=pulse.estimated),
    )


def _bars(slots: Sequence[PulseSlot], scale: float, zone: ZoneInfo) -> Iterator[Bar]:
    width = 100 / len(slots)
    for place, slot in enumerate(slots):
        pieces = tuple(_pieces(slot, scale))
        if pieces:
            yield Bar(
                x=round(place * width, 3),
                width=round(width * 0.8, 3),
                pieces=pieces,
                words=_words(slot, zone),
                address=_address(slot.at, slot.at + SLOT, ahead=not slot.ended),
            )


def _pieces(slot: PulseSlot, scale: float) -> Iterator[Piece]:
    top = bottom = _UP
    for state in _GOOD:
        if count := slot.ended.get(state, 0):
            height = max(count * scale, _LEAST)
            top -= height
            yield Piece(look=_LOOKS[state], y=round(top, 2), height=round(height, 2))
    if slot.expected:
        height = max(slot.expected * scale, _LEAST)
        yield Piece(look="expected", y=round(top - height, 2), height=round(height, 2))
    for state in _NOT:
        if count := slot.ended.get(state, 0):
            height = max(count * scale, _LEAST)
            yield Piece(look=_LOOKS[state], y=round(bottom, 2), height=round(height, 2))
            bottom += height


def _labels(slots: Sequence[PulseSlot], zone: ZoneInfo, now: datetime) -> Iterator[Label]:
    """The first slot of every second hour of the reader's clock, with room for the word now."""
    for place, slot in enumerate(slots):
        there = slot.at.astimezone(zone)
        room = 0 < place < len(slots) - 3 and abs(slot.at - now) > _ROOM
        if room and there.minute < SLOT // _MINUTE and there.hour % 2 == 0:
            yield Label(x=round(place * 100 / len(slots), 3), words=f"{there:%H:%M}")


def _hours(slots: Sequence[PulseSlot]) -> Iterator[Hour]:
    size = _HOUR // SLOT
    for first in range(0, len(slots), size):
        part = slots[first : first + size]
        counts = {state.value: sum(slot.ended.get(state, 0) for slot in part) for state in ExecutionState}
        expected = round(sum(slot.expected for slot in part))
        address = _address(part[0].at, part[0].at + _HOUR, ahead=not any(slot.ended for slot in part))
        yield Hour(at=part[0].at, address=address, counts=counts, expected=expected)


def _address(since: datetime, until: datetime, *, ahead: bool) -> str:
    """The runs that were due in this time, or the line of time around it."""
    first, middle, last = (f"{at:%Y-%m-%dT%H:%MZ}" for at in _times(since, until))
    if ahead:
        return "/ui/timeline?" + urlencode({"span": "1h", "at": middle})
    return "/ui/runs?" + urlencode({"q": f"due:>={first} due:<{last}"})


def _times(since: datetime, until: datetime) -> Iterator[datetime]:
    yield from (at.astimezone(UTC) for at in (since, since + (until - since) / 2, until))


def _words(slot: PulseSlot, zone: ZoneInfo) -> str:
    there, then = slot.at.astimezone(zone), (slot.at + SLOT).astimezone(zone)
    counted = [f"{count:,} {state}" for state, count in slot.ended.items() if count]
    if slot.expected:
        counted.append(f"{round(slot.expected) or 1:,} to come")
    return f"{there:%H:%M} to {then:%H:%M} {then:%Z}: {', '.join(counted)}"


def _summary(hours: Sequence[Hour], *, estimated: bool) -> str:
    done, failed = (sum(hour.counts[name] for hour in hours) for name in ("completed", "failed"))
    ahead = f"{'about ' if estimated else ''}{sum(hour.expected for hour in hours):,}"
    runs = "run" if done == 1 else "runs"
    return (
        f"In the last six hours {done:,} {runs} completed and {failed:,} failed; {ahead} come in the next six"
    )


def _well(slot: PulseSlot) -> float:
    return sum(slot.ended.get(state, 0) for state in _GOOD) + slot.expected


def _badly(slot: PulseSlot) -> float:
    return float(sum(slot.ended.get(state, 0) for state in _NOT))


def _share(part: timedelta, whole: timedelta) -> float:
    return round(part / whole * 100, 3)
