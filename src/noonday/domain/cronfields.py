"""The grammar of a cron text: checks each field, and writes it in the plain form that cronsim evaluates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

MAX_LENGTH = 256

ALIASES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

_TERM = re.compile(r"(?P<low>[A-Z]+|[0-9]+)(?:-(?P<high>[A-Z]+|[0-9]+))?(?:/(?P<step>[0-9]+))?")
_STAR = re.compile(r"\*(?:/(?P<step>[0-9]+))?")
_SPREAD = re.compile(r"H(?:\((?P<low>[0-9]+)-(?P<high>[0-9]+)\))?(?:/(?P<step>[0-9]+))?")
_NTH = re.compile(r"(?P<day>[A-Z]+|[0-9])#(?P<nth>[1-5])")
_LAST = re.compile(r"(?P<day>[A-Z]{3}|[0-9])L")


class CronError(ValueError):
    """A cron text that cannot be understood or can never be due; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    name: str
    low: int
    high: int
    spread_high: int  # H picks from low to here
    names: Mapping[str, int] = field(default_factory=dict)
    wraps: bool = False  # FRI-MON, NOV-FEB

    def number(self, text: str) -> int:
        value = self.names.get(text)
        if value is None:
            if not text.isdigit():
                hint = f", or a name such as {next(iter(self.names))}" if self.names else ""
                raise CronError(f"{self.name} {text!r} is not a number from {self.low} to {self.high}{hint}")
            value = int(text)
        if not self.low <= value <= self.high:
            raise CronError(f"{self.name} {text!r} is outside {self.low}-{self.high}")
        return value


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


DAY, MONTH, WEEKDAY = 3, 4, 5
RULES = (
    FieldRule(name="second", low=0, high=59, spread_high=59),
    FieldRule(name="minute", low=0, high=59, spread_high=59),
    FieldRule(name="hour", low=0, high=23, spread_high=23),
    FieldRule(name="day of month", low=1, high=31, spread_high=28),  # a day that every month has
    FieldRule(
        name="month",
        low=1,
        high=12,
        spread_high=12,
        names=_numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
        wraps=True,
    ),
    FieldRule(
        name="day of week",
        low=0,
        high=7,
        spread_high=6,
        names=_numbered("SUN MON TUE WED THU FRI SAT", 0),
        wraps=True,
    ),
)


@lru_cache(maxsize=4096)
def split(expression: str) -> tuple[str, ...]:
    """The six fields as written, seconds first (`0` where there are five); aliases spelled out."""
    if len(expression) > MAX_LENGTH:
        raise CronError(f"a cron text has at most {MAX_LENGTH} characters, not {len(expression)}")
    if not expression.isascii():
        raise CronError("a cron text has plain ASCII characters only")
    text = expression.upper().strip()
    if text.startswith("@"):
        text = _spelled_out(text)
    fields = tuple(text.split())
    if len(fields) == 5:
        return ("0", *fields)
    if len(fields) != 6:
        raise CronError(f"a cron text has 5 fields, or 6 with the seconds first, not {len(fields)}")
    return fields


def spreads(text: str) -> bool:
    """Has this field an H that the job's key decides?"""
    return any(term.startswith("H") for term in text.split(","))


def plain(index: int, text: str, key: str) -> str:
    """One field with names as numbers, wrapped ranges spelled out, and H decided by the key."""
    return ",".join(_plain_term(index, term, key) for term in text.split(","))


def _spelled_out(text: str) -> str:
    if text == "@REBOOT":
        raise CronError("@reboot has no time: an immediate schedule runs once, at once")
    if text not in ALIASES:
        known = ", ".join(alias.lower() for alias in ALIASES)
        raise CronError(f"{text.lower()!r} is not one of {known}")
    return ALIASES[text]


def _plain_term(index: int, term: str, key: str) -> str:
    rule = RULES[index]
    if match := _STAR.fullmatch(term):
        _step(rule, match["step"])
        return term
    if match := _SPREAD.fullmatch(term):
        return _spread(index, match, key)
    if index == DAY and term in {"L", "LW"}:
        return term
    if index == WEEKDAY and (match := _NTH.fullmatch(term)):
        return f"{rule.number(match['day'])}#{match['nth']}"
    if index == WEEKDAY and (match := _LAST.fullmatch(term)):
        return f"{rule.number(match['day'])}L"
    if match := _TERM.fullmatch(term):
        return _range(index, term, match)
    raise CronError(f"{rule.name} {term!r} is not a value, a range, a step or a list of them")


def _range(index: int, term: str, match: re.Match[str]) -> str:
    rule = RULES[index]
    low, step = rule.number(match["low"]), _step(rule, match["step"])
    suffix = f"/{step}" if match["step"] else ""
    if not match["high"]:
        return f"{low}{suffix}"
    high = rule.number(match["high"])
    if index == WEEKDAY:
        low, high = _week_range(low, high)
    if low <= high:
        return _stepped(low, high, suffix)
    if not rule.wraps:
        hint = f"{low}-{rule.high},{rule.low}-{high}"
        raise CronError(f"{rule.name} {term!r} runs backwards; did you mean {hint}?")
    size = 7 if index == WEEKDAY else rule.high
    values = [(value - rule.low) % size + rule.low for value in range(low, high + size + 1)]
    return ",".join(str(value) for value in values[::step])


def _stepped(low: int, high: int, suffix: str) -> str:
    # cronsim takes 5-5/2 for 5/2, which goes on to the end of the field.
    return f"{low}-{high}{suffix}" if low < high else str(low)


def _week_range(low: int, high: int) -> tuple[int, int]:
    """Sunday is 0 at the start of a range and 7 at its end."""
    if low == 7 and high != 7:
        low = 0
    if high == 0 and low > 0:
        high = 7
    return low, high


def _spread(index: int, match: re.Match[str], key: str) -> str:
    rule = RULES[index]
    low, high = rule.low, rule.spread_high
    if match["low"]:
        low, high = rule.number(match["low"]), rule.number(match["high"])
    if not rule.low <= low <= high <= rule.spread_high:
        raise CronError(f"{rule.name} {match[0]!r}: H picks from within {rule.low}-{rule.spread_high}")
    step = _step(rule, match["step"])
    if not match["step"]:
        return str(low + _draw(key, index) % (high - low + 1))
    if step > high - low + 1:
        raise CronError(f"{rule.name} {match[0]!r}: the step is larger than the range {low}-{high}")
    return _stepped(low + _draw(key, index) % step, high, f"/{step}")


def _step(rule: FieldRule, text: str | None) -> int:
    step = int(text) if text else 1
    if not 1 <= step <= 9999:
        raise CronError(f"{rule.name} step {text!r} is not a number from 1 on")
    return step


def _draw(key: str, index: int) -> int:
    digest = hashlib.sha256(f"{key}\0{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
