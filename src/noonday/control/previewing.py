"""A schedule before it is saved: its words and next times, what clocks and calendars do to them, and a cron
text field by field."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from noonday.control.explain import preview
from noonday.domain import cronfields
from noonday.domain.occurrences import Occurrence, occurrences
from noonday.domain.schedule import Cron, Timing
from noonday.domain.wallclock import changes, offset_at

__all__ = ["CronPart", "Explained", "Left", "Moment", "cron_parts", "explained"]

_LOOKED_AT: Final = 2000  # due times among which those that are left out are looked for
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time at which it will run, on which day of the week in its own zone, and what is special about it."""

    at: datetime
    day: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A time at which it would be due, and why it will not run."""

    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CronPart:
    """A field of a cron text as it is written; `wrong` says why it cannot be understood."""

    name: str
    text: str
    wrong: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    words: str
    moments: tuple[Moment, ...]
    left: tuple[Left, ...] = ()  # before the last of the moments
    spread: bool = False  # H: by the id that a job gets when it is saved


def explained(timing: Timing, key: str, count: int, after: datetime) -> Explained:
    """Refuses a wrong schedule with Invalid. `key` is the job's id, nothing for one that has none yet."""
    found = preview(timing, key, count, after)
    zone = ZoneInfo(timing.timezone)
    due = _due(timing, key, after, found.times)
    moved = {one.available_at: one.detail for one in due if one.skip is None and one.detail}
    return Explained(
        words=found.words,
        moments=tuple(
            Moment(
                at=at,
                day=f"{at.astimezone(zone):%a}",
                note=moved.get(at) or _note(zone, at, before),
            )
            for before, at in zip((after, *found.times), found.times, strict=False)
        ),
        left=tuple(Left(at=one.due_at, why=one.detail or "") for one in due if one.skip)[:_SHOWN],
        spread=not key and _spreads(timing),
    )


def cron_parts(expression: str) -> tuple[CronPart, ...]:
    """Each field with its own verdict, as far as there are any; nothing for `@daily` and its kin."""
    texts = expression[: cronfields.MAX_LENGTH].split()
    if not texts or texts[0].startswith("@"):
        return ()
    rules = cronfields.RULES[len(texts) != len(cronfields.RULES) :]
    first = len(cronfields.RULES) - len(rules)
    parts = [
        CronPart(name=rule.name, text=text, wrong=_wrong(index, text))
        for index, (rule, text) in enumerate(zip(rules, texts, strict=False), first)
    ]
    parts += [CronPart(name=rule.name, text="", wrong="is missing") for rule in rules[len(texts) :]]
    parts += [CronPart(name="", text=text, wrong="is one too many") for text in texts[len(rules) :]]
    return tuple(parts)


def _wrong(index: int, text: str) -> str:
    try:
        cronfields.plain(index, text.upper(), "")
    except cronfields.CronError as error:
        return str(error)
    return ""


def _spreads(timing: Timing) -> bool:
    if not isinstance(timing.schedule, Cron):
        return False
    return any(cronfields.spreads(text) for text in cronfields.split(timing.schedule.expression))


def _due(timing: Timing, key: str, after: datetime, times: tuple[datetime, ...]) -> list[Occurrence]:
    """What is due until the last of the times, where windows or a calendar have a say."""
    if not timing.availability.limited:
        return []
    until = times[-1] if times else after + timedelta(days=366)
    seen = takewhile(lambda one: one.due_at <= until, occurrences(timing, key, after))
    return list(islice(seen, _LOOKED_AT))


def _note(zone: ZoneInfo, at: datetime, before: datetime) -> str:
    """The change of the clocks that this run meets, if any."""
    moved = offset_at(zone, at) - offset_at(zone, before)
    if at in changes(zone, at.year) and moved > timedelta():
        return "the clocks go forward at this moment, so that its time of day may be skipped"
    local = at.astimezone(zone)
    if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
        which = "second" if local.fold else "first"
        return f"the clocks go back: this time of day comes twice, and this is the {which}"
    if moved:
        way = "forward" if moved > timedelta() else "back"
        return (
            f"the clocks have gone {way} by {abs(moved) // timedelta(minutes=1)} minutes since the run before"
        )
    return ""
