"""Fills a database with schedules: a crowd that sleeps for a year, and those that are to fire."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import text

from bench.machinery import Place
from noonday.clock import SystemClock
from noonday.domain.job import Job, JobId, JobState
from noonday.domain.schedule import Interval, IntervalUnit, Once, Timing
from noonday.domain.target import PythonTarget
from noonday.ids import new_id
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.tables import jobs as table

NEVER = timedelta(days=365)


def a_job(place: Place, now: datetime, first_at: datetime, every: timedelta | None = None) -> Job:
    schedule = (
        Once(run_at=first_at)
        if every is None
        else Interval(count=int(every.total_seconds()), unit=IntervalUnit.SECONDS)
    )
    made = new_id(now)
    return Job(
        id=JobId(made),
        name=made,
        timing=Timing(schedule=schedule, anchor_at=first_at if every is None else first_at - every),
        target=PythonTarget(task="note"),
        scheduler_version=place.version,
        state=JobState.SCHEDULED,
        next_run_at=first_at,
        created_at=now,
        updated_at=now,
    )


def add(db: Database, made: list[Job]) -> None:
    for start in range(0, len(made), 1000):
        db.write_now(partial(jobs.add_many, made=made[start : start + 1000]))


def add_crowd(db: Database, count: int) -> None:
    """`count` copies of one sleeping job by plain SQL, each with an id, a name and a moment of its own."""
    now = SystemClock().now()
    model = a_job(Place(""), now, now + NEVER, timedelta(days=1))
    db.write_now(lambda conn: jobs.add(conn, model))
    names = [column.name for column in table.columns]
    sqlite = db.dialect == "sqlite"
    own_id = (
        "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)"
        " || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
        if sqlite
        else "gen_random_uuid()"
    )
    later = (
        "strftime('%Y-%m-%d %H:%M:%f', jobs.next_run_at, '+' || (n % 86400) || ' seconds') || '000'"
        if sqlite
        else "jobs.next_run_at + (n % 86400) * interval '1 second'"
    )
    own = {"id": own_id, "name": "'crowd-' || n", "next_run_at": later}
    values = ", ".join(own.get(name, f'jobs."{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    series = (
        "(with recursive s(n) as (select 1 union all select n + 1 from s where n < :count) select n from s)"
        if sqlite
        else "(select generate_series(1, :count) as n)"
    )
    fill = (
        f"insert into jobs ({columns}) select {values} from jobs, {series} as numbers where jobs.id = :model"
    )
    db.write_now(lambda conn: conn.execute(text(fill), {"count": count - 1, "model": model.id}))
    if not sqlite:
        db.write_now(lambda conn: conn.execute(text("analyze jobs")))
