"""Lines of time and the load by the hour, on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.schedules import instant_text
from noonday.control.loads import Coming, Past
from noonday.control.timeline import Drawn, Timeline
from noonday.domain.timeline import Mark

__all__ = ["LoadShape", "TimelineShape", "load_json", "timeline_json"]

Json = dict[str, Any]


class MarkShape(Shape):
    """A run, or several that begin too close to be told apart: then `count` is above 1 and there is no id."""

    execution_id: str | None
    state: str = Field(description="of an execution, or `planned`; of several, the one to look at first")
    due: datetime
    start: datetime
    end: datetime
    late_seconds: float
    count: int
    row: int = Field(description="0, or above it where runs of the job overlap")


class TrackShape(Shape):
    job_id: str
    job_name: str
    group: str = Field(description="the service or the tag; empty where there is none")
    runs: dict[str, int] = Field(description="how many, by state")
    late: int
    overlaps: int
    marks: list[MarkShape]


class TimelineShape(Shape):
    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")
    now: datetime
    tracks: list[TrackShape]
    groups: dict[str, int] = Field(description="jobs of each group, on all pages")
    total: int
    limit: int
    offset: int
    partial: bool = Field(description="there are more jobs or runs than are looked at")


class PastHourShape(Shape):
    at: datetime
    starts: int
    failed: int
    busy_seconds: float


class ComingHourShape(Shape):
    at: datetime
    starts: float
    busy_seconds: float = Field(description="if runs take as long as the newest ones did")


class LoadShape(Shape):
    """Each hour in which something was due, and each in which something will be."""

    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")
    past: list[PastHourShape]
    planned: list[ComingHourShape]
    jobs: int = Field(description="that fire before the end")
    rough: bool = Field(description="some later times are guessed from the pace of their job")
    partial: bool = Field(description="there are more jobs than are looked at")


def timeline_json(found: Timeline, limit: int, offset: int) -> Json:
    return {
        "from": instant_text(found.since),
        "to": instant_text(found.until),
        "now": instant_text(found.now),
        "tracks": [_track(one) for one in found.tracks],
        "groups": dict(found.groups),
        "total": found.total,
        "limit": limit,
        "offset": offset,
        "partial": found.partial or found.grouped < found.total,
    }


def load_json(past: Past, coming: Coming) -> Json:
    return {
        "from": instant_text(past.since),
        "to": instant_text(coming.until),
        "past": [
            {
                "at": instant_text(at),
                "starts": hour.starts,
                "failed": hour.failed,
                "busy_seconds": _seconds(hour.busy),
            }
            for at, hour in sorted(past.hours.items())
        ],
        "planned": _planned(coming.starts, coming.busy),
        "jobs": coming.jobs,
        "rough": coming.rough,
        "partial": coming.partial,
    }


def _planned(starts: Mapping[datetime, float], busy: Mapping[datetime, timedelta]) -> list[Json]:
    return [
        {
            "at": instant_text(at),
            "starts": round(count, 2),
            "busy_seconds": _seconds(busy.get(at, timedelta())),
        }
        for at, count in sorted(starts.items())
    ]


def _track(drawn: Drawn) -> Json:
    return {
        "job_id": drawn.track.job_id,
        "job_name": drawn.track.name,
        "group": drawn.track.group,
        "runs": dict(drawn.line.counts),
        "late": drawn.line.late,
        "overlaps": drawn.line.overlaps,
        "marks": [_mark(one) for one in drawn.line.marks],
    }


def _mark(mark: Mark) -> Json:
    return {
        "execution_id": mark.id,
        "state": mark.state,
        "due": instant_text(mark.due),
        "start": instant_text(mark.start),
        "end": instant_text(mark.end),
        "late_seconds": _seconds(mark.lateness),
        "count": mark.count,
        "row": mark.row,
    }


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 3)
