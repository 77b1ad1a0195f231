"""What a transaction tells the others once it is committed: something about a topic has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection

from noonday.domain.execution import SkipReason
from noonday.domain.job import JobId

Skip = tuple[JobId, SkipReason]

JOBS: Final = "jobs"  # a definition or a cursor changed: the planner looks again
WORK: Final = "work"  # something became claimable, now or later: workers look again
PLEDGED: Final = "pledged"  # the same, of what the streams will bring: a matter for those who cannot use them
CANCEL: Final = "cancel"  # a running execution is asked to stop
INSTANCES: Final = "instances"  # somebody wants an instance to drain or to resume, or a leader resigned
BREAKERS: Final = "breakers"  # a circuit breaker opened, closed or was reset
SERVICES: Final = "services"  # a service got another base URL
EVENTS: Final = "events"  # something new is in the table of events: streams go on

TOPICS: Final = (JOBS, WORK, PLEDGED, CANCEL, INSTANCES, BREAKERS, SERVICES, EVENTS)
_KEY = "noonday.topics"
_SKIPS = "noonday.skips"
_NONE: Final[Mapping[Skip, int]] = {}


def tell(conn: Connection, topic: str) -> None:
    """Wake the subscribers of this topic after the commit; nothing happens if it rolls back."""
    conn.info.setdefault(_KEY, set()).add(topic)


def told(conn: Connection) -> frozenset[str]:
    """Take the topics told so far on this connection."""
    return frozenset(conn.info.pop(_KEY, ()))


def skipped(conn: Connection, job_id: JobId, reason: SkipReason, count: int = 1) -> None:
    """Due times that will not run: whoever counts them learns of it after the commit."""
    conn.info.setdefault(_SKIPS, Counter())[job_id, reason] += count


def skips(conn: Connection) -> Mapping[Skip, int]:
    """Take the skips noted so far on this connection."""
    found: Mapping[Skip, int] = conn.info.pop(_SKIPS, _NONE)
    return found
