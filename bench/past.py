"""A long past: runs that have ended, spread evenly over the jobs and the last week, in order of time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Final

import psycopg

from noonday.clock import SystemClock
from noonday.engine.tallier import Tallier, TallierConfig
from noonday.ids import new_id
from noonday.store.columns import instant_text
from noonday.store.database import Database

_SPAN: Final = timedelta(days=7)
_COLUMNS: Final = (
    "id, job_id, cause, scheduled_for, state, number, claimed_at, started_at, completed_at, created_at"
)
_JOBS: Final = "select id from jobs"

Row = tuple[str | int, ...]


def case_of(case: str, rows: int) -> str:
    return f"{case}, {rows:,} past"


def add(url: str, rows: int) -> None:
    """To the jobs that are there, by a leader that has been at work: what is past is tallied."""
    if url.startswith("sqlite:///"):
        _to_sqlite(url.removeprefix("sqlite:///"), rows)
    else:
        _to_postgres(url, rows)
    db = Database(url)
    asyncio.run(_tally(db))
    db.close_now()


def _to_sqlite(path: str, rows: int) -> None:
    places = ", ".join("?" * len(_COLUMNS.split(",")))
    with closing(sqlite3.connect(path)) as connection:
        jobs = [row[0] for row in connection.execute(_JOBS)]
        connection.executemany(
            f"insert into executions ({_COLUMNS}) values ({places})",
            _made(jobs, rows),
        )
        connection.commit()


def _to_postgres(url: str, rows: int) -> None:
    with psycopg.connect(url, options="-c timezone=UTC") as connection, connection.cursor() as cursor:
        jobs = [str(row[0]) for row in cursor.execute(_JOBS)]
        with cursor.copy(f"copy executions ({_COLUMNS}) from stdin") as copy:
            for row in _made(jobs, rows):
                copy.write_row(row)


def _made(jobs: Sequence[str], rows: int) -> Iterator[Row]:
    now = SystemClock().now()
    for number in range(rows):
        at = now - _SPAN * ((rows - number) / rows)
        text, end = instant_text(at), instant_text(at + timedelta(seconds=1 + number % 50))
        state = "failed" if number % 40 == 0 else "completed"
        yield new_id(at), jobs[number % len(jobs)], "schedule", text, state, number, text, text, end, text


async def _tally(db: Database) -> None:
    config = TallierConfig()
    tallier = Tallier(db=db, clock=SystemClock(), config=config)
    while await tallier.run_once() != config.every:
        pass
