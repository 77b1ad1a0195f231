"""Events on the wire: server-sent events whose data looks like a CloudEvent, and who may see which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from noonday.api.schedules import instant_text
from noonday.control.secrets import redacted
from noonday.domain.access import ANYBODY, Caller
from noonday.domain.topics import MANY, RESYNC, Topic, topic_of
from noonday.store.events import Event

__all__ = ["Wanted", "beat", "encoded", "greeting", "resync", "without_number"]

_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_RETRY: Final = 3_000  # milliseconds until a client that was cut off comes again
_SUBJECTS: Final = ("breaker", "instance", "service", "engine")  # under which a payload names its subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a listener wants to hear, and of whose jobs it may hear at all."""

    topics: frozenset[Topic] = frozenset(Topic)
    job_id: str | None = None
    caller: Caller = ANYBODY

    def sees(self, event: Event) -> bool:
        if topic_of(event.kind) not in self.topics:
            return False
        if event.kind == MANY:  # its jobs may be among them
            return True
        if self.job_id is not None and event.job_id != self.job_id:
            return False
        return self.caller.owns(_owner(event))

    def form(self, event: Event, chunk: bytes) -> bytes:
        """How many runs others had is nobody's business who may see one service alone."""
        if event.kind == MANY and self.caller.confined:
            return _chunk(event.seq, event.kind, event.at, None, {})
        return chunk


def _owner(event: Event) -> str | None:
    if event.job_id is None:
        return None
    return event.service or event.payload.get("service")  # a job that is gone has told it before


def encoded(event: Event) -> bytes:
    ids = {"job_id": event.job_id, "job_name": event.job_name, "execution_id": event.execution_id}
    known = {name: value for name, value in ids.items() if value is not None}
    return _chunk(event.seq, event.kind, event.at, _subject(event), known | redacted(dict(event.payload)))


def greeting(position: int) -> bytes:
    """With a number, so that a listener that is cut off before the first event can go on from here."""
    return f"retry: {_RETRY}\nid: {position}\n\n".encode()


def beat(position: int) -> bytes:
    """A sign of life. The number grows with what was passed over, so that it does not become too old."""
    return f": alive\nid: {position}\n\n".encode()


def resync(position: int, now: datetime) -> bytes:
    told = {"detail": "some events are not kept any more: read again what you show, then go on listening"}
    return _chunk(position, RESYNC, now, None, told)


def without_number(chunk: bytes) -> bytes:
    """An event that came late must not set a listener back."""
    return chunk.partition(b"\n")[2]


def _subject(event: Event) -> str | None:
    if event.execution_id is not None and event.kind.startswith(("execution", "output")):
        return f"executions/{event.execution_id}"
    if event.job_id is not None:
        return f"jobs/{event.job_id}"
    return next((f"{key}s/{event.payload[key]}" for key in _SUBJECTS if key in event.payload), None)


def _chunk(number: int, kind: str, at: datetime, subject: str | None, data: Mapping[str, Any]) -> bytes:
    told = {
        "id": str(number),
        "type": kind if kind == RESYNC else f"noonday.{kind}",
        "time": instant_text(at),
        "subject": subject,
        "data": data,
    }
    text = f"id: {number}\nevent: {kind}\ndata: {_dumps(told)}\n\n"
    return text.encode("utf-8", "replace")
