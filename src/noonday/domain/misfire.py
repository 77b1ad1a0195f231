"""What becomes of instants that were missed: they fire late, one fires for all, or they are given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from noonday.domain.execution import SkipReason
from noonday.domain.job import CatchUp, Job, MisfirePolicy
from noonday.domain.occurrences import Occurrence
from noonday.domain.schedule import Immediate, Timing

BUSY = timedelta(seconds=1)  # so little lateness is a busy second, not an outage


def judge(
    job: Job, seen: Sequence[Occurrence], beyond: Occurrence | None, now: datetime
) -> Sequence[Occurrence]:
    """The same occurrences in their order; missed ones that do not fire now carry the reason in `skip`.

    `beyond` is the first one after `seen` that windows and calendar let pass. Where only the newest of the
    missed ones fires, it is the newest of all, not of those seen: if `beyond` is missed too, then all those
    seen are covered by one that a later call finds.
    """
    missed_before = now - BUSY
    if not seen or seen[0].available_at >= missed_before or always_fires(job):
        return seen
    policy, oldest = job.misfire, oldest_in_grace(job.timing, job.misfire, now)
    missed = [n for n, one in enumerate(seen) if one.skip is None and one.available_at < missed_before]
    given_up = [n for n in missed if policy.catch_up is CatchUp.NONE and seen[n].available_at < oldest]
    one_for_all = policy.catch_up is CatchUp.LATEST or policy.coalesce
    covered = missed[len(given_up) :] if one_for_all else []
    newest: datetime | None = None
    if covered and (beyond is None or beyond.available_at >= missed_before):
        newest = seen[covered.pop()].due_at
    judged = list(seen)
    for n in given_up:
        judged[n] = replace(seen[n], skip=SkipReason.MISFIRE, detail=too_late(policy))
    for n in covered:
        judged[n] = replace(seen[n], skip=SkipReason.COALESCED, detail=covered_by(newest))
    return judged


def oldest_in_grace(timing: Timing, policy: MisfirePolicy, now: datetime) -> datetime:
    """Jitter makes an instant due at any moment up to its jitter later, so the grace begins only there."""
    return now - max(policy.grace + timing.jitter, BUSY)


def too_late(policy: MisfirePolicy) -> str:
    return f"missed by more than the grace of {policy.grace.total_seconds():g} s"


def covered_by(newest: datetime | None) -> str:
    if newest is None:
        return "covered by the run of a later missed time"
    return f"covered by the run due at {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def always_fires(job: Job) -> bool:
    """However late."""
    # "Now" has no grace: whoever asked for an immediate run wants it as soon as it can be had.
    return job.misfire.catch_up is CatchUp.ALL or isinstance(job.timing.schedule, Immediate)
