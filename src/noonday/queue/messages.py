"""What is on the road: the names of the streams, and messages read with suspicion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, TypeVar

from noonday.domain.execution import ExecutionId
from noonday.domain.job import Lane
from noonday.ports import Delivery

GROUP = "scheduler"
FIELD = "id"
PAGE = 1000  # messages per command or round trip

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

T = TypeVar("T")
Keys = Mapping[Lane, str]


def keys(prefix: str) -> Keys:
    return {lane: f"{prefix}:jobs:{lane.name.lower()}" for lane in sorted(Lane)}


def execution_id(fields: Sequence[str] | None) -> ExecutionId | None:
    """What the flat fields of a message name, or None if it is none of ours."""
    for name, value in zip((fields or ())[::2], (fields or ())[1::2], strict=False):
        if name == FIELD and _UUID.fullmatch(value):
            return ExecutionId(value.lower())
    return None


def read(lane: Lane, entries: Iterable[Sequence[Any]]) -> tuple[list[Delivery], list[str]]:
    """Deliveries, and the receipts of what is none: malformed, or deleted while it was pending."""
    good: list[Delivery] = []
    bad: list[str] = []
    for receipt, fields in entries:
        named = execution_id(fields)
        if named is None:
            bad.append(receipt)
        else:
            good.append(Delivery(lane, named, receipt))
    return good, bad


def read_text(lane: Lane, text: str) -> tuple[list[Delivery], list[str]]:
    """As `read`, of receipts and ids in turn with blanks between them."""
    good: list[Delivery] = []
    bad: list[str] = []
    parts = text.split(" ") if text else []
    for receipt, named in zip(parts[::2], parts[1::2], strict=True):
        if _UUID.fullmatch(named):
            good.append(Delivery(lane, ExecutionId(named.lower()), receipt))
        else:
            bad.append(receipt)
    return good, bad


def texts(named: Iterable[tuple[Lane, str]]) -> dict[Lane, str]:
    """The names of each lane in one text, with blanks between them."""
    found: dict[Lane, list[str]] = {}
    for lane, name in named:
        found.setdefault(lane, []).append(name)
    return {lane: " ".join(names) for lane, names in found.items()}


def receipts(deliveries: Collection[Delivery]) -> Iterator[tuple[Lane, list[str]]]:
    """By lane, because each lane has its own stream."""
    for lane, members in groupby(sorted(deliveries, key=_lane), key=_lane):
        yield lane, [delivery.receipt for delivery in members]


def pages(things: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    rest = iter(things)
    while page := list(islice(rest, size)):
        yield page


def _lane(delivery: Delivery) -> Lane:
    return delivery.lane
