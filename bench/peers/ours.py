"""Noonday among its peers: a fresh database, jobs in it, and the process that a user would start."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from bench import crowd, past
from bench.peers.marks import FOLDER, PG, REDIS, empty_redis
from noonday.cli.benching import filling, measures
from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.target import HttpTarget, PythonTarget
from noonday.store import migrate
from noonday.store.database import Database

_SQLITE = os.environ.get("BENCH_SQLITE")
_STREAMS = bool(os.environ.get("BENCH_STREAMS"))
_ROLES = os.environ.get("BENCH_ROLES", "scheduler,worker")
_CROWD = int(os.environ.get("BENCH_CROWD", "0"))
_PAST = int(os.environ.get("BENCH_PAST", "0"))
_WITH_A_PAST = 1000  # jobs, where there is no crowd
_NAME = "noonday_bench"
_MODEL = f"{_NAME}_{_CROWD}_{_PAST}"
_FILE = FOLDER / f"model_{_CROWD}_{_PAST}.db"
_PREFIX = "crawler"  # the default of SCHEDULER_QUEUE_PREFIX


def _on_server(name: str) -> str:
    return PG.rpartition("/")[0] + "/" + name


URL = f"sqlite:///{_SQLITE}" if _SQLITE else _on_server(_NAME)
KIND = filling.Kind(version=2 if _STREAMS else 1, target=PythonTarget(task="nothing"))


def prepare() -> None:
    """The model of every fresh database, made once: migrated, with schedules that sleep and their past."""
    if _SQLITE:
        if not _FILE.exists():
            _fill(f"sqlite:///{_FILE}")
        return
    with psycopg.connect(PG, autocommit=True) as connection:
        there = connection.execute("select 1 from pg_database where datname = %s", (_MODEL,)).fetchone()
        if there is None:
            _tell(connection, "create database {}", _MODEL)
            _fill(_on_server(_MODEL))
            with psycopg.connect(_on_server(_MODEL), autocommit=True) as filled:
                filled.execute("vacuum analyze")


def fresh() -> None:
    """A copy of the model."""
    prepare()
    if _STREAMS:
        empty_redis()
    if _SQLITE:
        for file in Path(_SQLITE).parent.glob(Path(_SQLITE).name + "*"):
            file.unlink()
        shutil.copy(_FILE, _SQLITE)
        return
    with psycopg.connect(PG, autocommit=True) as connection:
        _tell(connection, "drop database if exists {} with (force)", _NAME)
        _tell(connection, "create database {} template {} strategy file_copy", _NAME, _MODEL)


def _tell(connection: psycopg.Connection[tuple[object, ...]], statement: LiteralString, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _fill(url: str) -> None:
    migrate.upgrade(url)
    if _CROWD or _PAST:
        db = Database(url)
        crowd.add(db, _CROWD or _WITH_A_PAST)
        db.close_now()
    if _PAST:
        past.add(url, _PAST)


def store(made: Iterable[Job], runs: Sequence[Execution] = ()) -> None:
    """Runs that wait are on their road already: rows of the database, or messages of the streams too."""
    db = Database(URL)
    try:
        filling.add(db, made, runs, pledged=_STREAMS)
    finally:
        db.close_now()
    if runs and _STREAMS:
        asyncio.run(measures.enqueue(REDIS, _PREFIX, runs))


def at(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def store_calls(count: int, urls: Sequence[str]) -> None:
    """Runs that wait and call these URLs in turn."""
    made: list[Job] = []
    runs: list[Execution] = []
    for url in urls:
        kind = replace(KIND, target=HttpTarget(url=url, body={"report": "daily"}))
        jobs, some = filling.waiting(kind, count // len(urls), 1)
        made += jobs
        runs += some
    store(made, [one for turn in zip(*_shares(runs, len(urls)), strict=True) for one in turn])


def _shares(runs: Sequence[Execution], among: int) -> list[Sequence[Execution]]:
    size = len(runs) // among
    return [runs[place * size : (place + 1) * size] for place in range(among)]


def command(roles: str = _ROLES, *more: str) -> list[str]:
    """As one would start it for this: the durable defaults."""
    redis = ["--redis-url", REDIS] if _STREAMS else []
    tasks = ["--tasks", "bench.peers.nothing", "--log-level", "error"]
    serve = [sys.executable, "-m", "noonday", "serve", "--database-url", URL, "--role", roles]
    port = [] if "--port" in more else ["--port", "0"]
    return [*serve, *tasks, *redis, *port, *more]
