"""Past, running and coming runs of many jobs on one line of time, a track for each job."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import invalid
from noonday.domain.job import JobId
from noonday.domain.timeline import (
    PLANNED,
    Grouping,
    Line,
    Mark,
    Seen,
    line_of,
    mark_of,
    planned,
    usual_span,
)
from noonday.domain.upcoming import Timed, fires_until
from noonday.store import forecasting, tracks
from noonday.store.database import Database
from noonday.store.jobs import JobFilter
from noonday.store.tracks import Track, Tracks

__all__ = ["MOST_TRACKS", "WIDEST", "Drawn", "Grouping", "Timeline", "Timelines", "Wanted"]

WIDEST: Final = timedelta(days=7)
MOST_TRACKS: Final = 200
_FARTHEST: Final = timedelta(days=366)
_MARKS: Final = 160  # of one track, beyond which neighbours are drawn as one
_FIRES: Final = 6_000  # times to come that one look computes, all tracks together
_AT_LEAST: Final = 100  # of each track


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs, from when until when, and which page of their tracks."""

    since: datetime
    until: datetime
    filter: JobFilter
    group: Grouping = Grouping.NONE
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A track with what is on it."""

    track: Track
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    since: datetime
    until: datetime
    now: datetime
    tracks: tuple[Drawn, ...]
    total: int  # jobs that match
    groups: Mapping[str, int]  # how many of them each group has, on all pages
    grouped: int  # jobs that have a place: all that match, or the first by name
    partial: bool  # there are more runs than one look takes


class Timelines:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def look(self, wanted: Wanted) -> Timeline:
        now = self._clock.now()
        _check(wanted, now)

        def read(conn: Connection) -> _Read:
            found = tracks.tracks(conn, wanted.filter, wanted.group, wanted.limit, wanted.offset)
            ids = [track.job_id for track in found.shown]
            runs, more = tracks.runs_within(conn, ids, wanted.since, wanted.until)
            coming = forecasting.timed(conn, ids) if wanted.until > now else {}
            return _Read(jobs=found, runs=runs, coming=coming, partial=more)

        found = await self._db.read(read)
        drawn = await asyncio.to_thread(lambda: tuple(_draw(found, wanted, now)))
        return Timeline(
            since=wanted.since,
            until=wanted.until,
            now=now,
            tracks=drawn,
            total=found.jobs.total,
            groups=found.jobs.groups,
            grouped=sum(found.jobs.groups.values()),
            partial=found.partial,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    jobs: Tracks
    runs: Mapping[JobId, list[Seen]]
    coming: Mapping[JobId, Timed]
    partial: bool


def _check(wanted: Wanted, now: datetime) -> None:
    if wanted.until <= wanted.since:
        raise invalid("to", wanted.until.isoformat(), f"lies before {wanted.since.isoformat()}")
    if wanted.until - wanted.since > WIDEST:
        raise invalid("to", wanted.until.isoformat(), f"is more than {WIDEST.days} days after the start")
    if wanted.since > now + _FARTHEST:
        raise invalid("from", wanted.since.isoformat(), f"is more than {_FARTHEST.days} days ahead")


def _draw(found: _Read, wanted: Wanted, now: datetime) -> Iterator[Drawn]:
    step = (wanted.until - wanted.since) / _MARKS
    shown = found.jobs.shown
    most = max(_FIRES // max(len(shown), 1), _AT_LEAST)
    for track in shown:
        seen = found.runs.get(track.job_id, [])
        marks = [mark_of(one, now) for one in seen]
        job = found.coming.get(track.job_id)
        if job is not None:
            known = {one.scheduled_for for one in seen} | {one.available_at for one in seen}
            marks += _coming(job, wanted, now, known, usual_span(marks), most)
        inside = (one for one in marks if one.end >= wanted.since and one.due <= wanted.until)
        yield Drawn(track=track, line=line_of(inside, step, _MARKS))


def _coming(
    job: Timed, wanted: Wanted, now: datetime, known: Collection[datetime | None], took: timedelta, most: int
) -> list[Mark]:
    """What is planned already has its row. A job faster than can be followed goes on as it began."""
    times = list(islice(fires_until(job, now, wanted.until, max(wanted.since, now)), most))
    made = planned((at for at in times if at > now and at not in known), took)
    if len(times) == most and times[-1] > times[0]:
        pace = (times[-1] - times[0]) / (most - 1)
        step = max(pace, (wanted.until - wanted.since) / _MARKS)
        at = times[-1] + pace
        while at <= wanted.until:
            count = max(round(step / pace), 1)
            made.append(Mark(start=at, end=at + (count - 1) * pace, state=PLANNED, due=at, count=count))
            at += step
    return made
