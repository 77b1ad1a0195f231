"""Earlier revisions of a job, rebuilt from the differences that the audit trail keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, get_type_hints

from noonday.control.restoring import built
from noonday.control.secrets import MASK, restored
from noonday.control.snapshots import plain
from noonday.domain.errors import Conflict, Invalid, NotFound
from noonday.domain.job import Job
from noonday.store.audit import AuditEntry

__all__ = ["as_it_was", "gone_back"]

# What people define. A pause stays a pause: going back to an earlier definition sets nothing in motion.
_KEPT: Final = frozenset(
    {
        *("id", "state", "paused", "paused_until", "next_run_at", "last_run_at", "last_status"),
        *("skipped_through", "fire_count", "retry_count", "created_at", "updated_at", "revision"),
    }
)
_KINDS: Final = get_type_hints(Job)
_SHOWN: Final = frozenset(field.name for field in fields(Job)) - {"updated_at", "revision"}


def as_it_was(job: Job, later: Sequence[AuditEntry], revision: int) -> Job:
    """To look at: what was secret is masked where it has changed since."""
    old = _fields(job, later, revision)
    values = {name: built(_KINDS[name], value) for name, value in old.items() if name in _SHOWN}
    return replace(job, **values, revision=revision)


def gone_back(job: Job, later: Sequence[AuditEntry], revision: int) -> tuple[Job, tuple[str, ...]]:
    """The job with its earlier definition, and where it keeps the secrets of today.

    The trail keeps no secrets. One that is not stored any more cannot come back, and is refused.
    """
    old = {name: value for name, value in _fields(job, later, revision).items() if name not in _KEPT}
    today = plain(job)
    try:
        values = {
            name: built(_KINDS[name], restored(value, today[name], name)) for name, value in old.items()
        }
    except Invalid as exc:
        where = ", ".join(problem.field for problem in exc.problems)
        raise Conflict(
            f"revision {revision} of {job.name!r} had a secret that is not kept any more, at {where}: "
            "change the job by hand and set it again"
        ) from exc
    return replace(job, **values), tuple(sorted(_masked(old)))


def _fields(job: Job, later: Sequence[AuditEntry], revision: int) -> dict[str, Any]:
    """The fields that have changed since, as they were; `later` is what changed them, the newest first."""
    if not 1 <= revision <= job.revision:
        raise NotFound(f"{job.name!r} has no revision {revision}: it is at {job.revision}")
    known = {entry.revision for entry in later}
    unknown = [number for number in range(job.revision, revision, -1) if number not in known]
    if unknown:
        raise NotFound(
            f"revision {revision} of {job.name!r} is not known: nobody recorded what made revision "
            f"{unknown[0]}, as when a job is changed by plain SQL"
        )
    old: dict[str, Any] = {}
    for entry in later:
        old |= entry.before or {}
    return {name: value for name, value in old.items() if name in _KINDS}


def _masked(value: Any, at: str = "") -> Iterator[str]:
    """The places of masked secrets."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield from _masked(item, f"{at}.{key}" if at else str(key))
        case list():
            for place, item in enumerate(value):
                yield from _masked(item, f"{at}[{place}]")
        case str() if MASK in value:
            yield at
        case _:
            pass
