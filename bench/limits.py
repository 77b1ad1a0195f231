"""The machine's own limits: the least that the same work costs, with nothing of a scheduler in between.

Rows inserted and updated twice, in batches, are what full history costs at the very least (planned, running,
finished), on the same server, with the same durability and in the same run as the scheduler, so that their
ratio means something on any machine.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
import redis

from bench import http_targets
from bench.figures import Subject, Values
from bench.peers.stage import Stage

BATCHES: Final = (100, 1000)
_TABLE: Final = """create table bench_limit (
    id {id} primary key, job_id {id} not null, state text not null, scheduled_for {instant} not null,
    started_at {instant}, completed_at {instant}, attempt int not null default 0, payload {json} not null,
    result {json}, error text)"""
# What a run is given and tells: a row with nothing in it is half as wide as anybody's history.
_PAYLOAD: Final = json.dumps({"k": "x" * 180})
_INDEXES: Final = (
    "create unique index bench_limit_slot on bench_limit (job_id, scheduled_for)",
    "create index bench_limit_open on bench_limit (scheduled_for) where state = 'queued'",
)


def of_rows(section: str, case: str, stage: Stage, total: int) -> Iterator[Subject]:
    """Those that a drain is compared with."""
    for batch in reversed(BATCHES):
        yield Subject(
            section=section,
            case=case,
            name=f"limit, PostgreSQL by {batch:,}",
            role="limit",
            take=partial(postgres, stage.postgres, total, batch),
            keeps="three states of a row",
        )
    yield Subject(
        section=section,
        case=case,
        name=f"limit, SQLite by {BATCHES[-1]:,}",
        role="limit",
        take=lambda: sqlite(stage.folder, total, BATCHES[-1]),
        keeps="three states of a row",
        beside="noonday, SQLite",
    )


def subjects(stage: Stage, total: int, calls: int) -> Iterator[Subject]:
    yield from of_rows("limits", "rows through three states", stage, total)
    more = {
        "one PostgreSQL commit": lambda: commits(stage.postgres, 500),
        "a stream by 500": lambda: streams(stage.redis, total),
        "aiohttp's client": lambda: client(calls),
    }
    for name, take in more.items():
        yield Subject(section="limits", case="other", name=f"limit, {name}", role="limit", take=take)


def _batches(total: int, batch: int) -> list[list[str]]:
    return [[str(uuid.uuid4()) for _ in range(batch)] for _ in range(max(1, total // batch))]


def postgres(dsn: str, total: int, batch: int) -> Values:
    """Executions per second with arrays and unnest, one commit per statement."""
    kinds = _TABLE.format(id="uuid", instant="timestamptz", json="jsonb")
    insert = f"""insert into bench_limit (id, job_id, state, scheduled_for, payload)
        select i, i, 'queued', %s, '{_PAYLOAD}' from unnest(%s::uuid[]) as u(i)"""
    running = (
        "update bench_limit set state = 'running', started_at = %s, attempt = 1 where id = any(%s::uuid[])"
    )
    finished = "update bench_limit set state = 'completed', completed_at = %s where id = any(%s::uuid[])"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create schema if not exists public")  # a peer may have taken it away
        connection.execute("drop table if exists bench_limit")
        for statement in (kinds, *_INDEXES):
            connection.execute(statement)
        batches = _batches(total, batch)
        start = time.perf_counter()
        for ids in batches:
            for statement in (insert, running, finished):
                connection.execute(statement, (datetime.now(UTC), ids))
        spent = time.perf_counter() - start
        connection.execute("drop table bench_limit")
    return {"per_second": len(batches) * batch / spent}


def sqlite(folder: Path, total: int, batch: int) -> Values:
    """Executions per second with executemany, one commit per batch and step, WAL and synchronous=FULL."""
    steps = (
        f"""insert into bench_limit (scheduled_for, state, id, job_id, payload)
            values (?1, 'queued', ?2, ?2, '{_PAYLOAD}')""",
        "update bench_limit set state = 'running', started_at = ?1, attempt = 1 where id = ?2",
        "update bench_limit set state = 'completed', completed_at = ?1 where id = ?2",
    )
    with tempfile.TemporaryDirectory(dir=folder) as own:  # on the disk of the scheduler's own file
        connection = sqlite3.connect(Path(own) / "limit.db", isolation_level=None)
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        for statement in (_TABLE.format(id="text", instant="text", json="text"), *_INDEXES):
            connection.execute(statement)
        batches = _batches(total, batch)
        start = time.perf_counter()
        for ids in batches:
            for statement in steps:
                now = datetime.now(UTC).isoformat()
                connection.execute("begin immediate")
                connection.executemany(statement, [(now, i) for i in ids])
                connection.execute("commit")
        spent = time.perf_counter() - start
        connection.close()
    return {"per_second": len(batches) * batch / spent}


def commits(dsn: str, times: int) -> Values:
    """One row in a transaction of its own."""
    spent = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create schema if not exists public")
        connection.execute("drop table if exists bench_commit")
        connection.execute("create table bench_commit (number int)")
        for number in range(times):
            start = time.perf_counter()
            connection.execute("insert into bench_commit values (%s)", (number,))
            spent.append(time.perf_counter() - start)
        connection.execute("drop table bench_commit")
    middle = statistics.median(spent)
    return {"per_second": 1 / middle, "p50_ms": middle * 1000}


def streams(url: str, total: int, batch: int = 500) -> Values:
    """Messages per second through a stream: added, read by a group, acknowledged and deleted, in batches."""
    with redis.Redis.from_url(url) as connection:
        connection.delete("bench:limit")
        connection.xgroup_create("bench:limit", "limit", id="0", mkstream=True)
        start = time.perf_counter()
        turns = max(1, total // batch)
        for _ in range(turns):
            with connection.pipeline(transaction=False) as adding:
                for _ in range(batch):
                    adding.xadd("bench:limit", {"id": "0" * 36})
                adding.execute()
            [(_, read)] = connection.xreadgroup("limit", "one", {"bench:limit": ">"}, count=batch)
            receipts = [receipt for receipt, _ in read]
            with connection.pipeline(transaction=False) as ending:
                ending.xack("bench:limit", "limit", *receipts)
                ending.xdel("bench:limit", *receipts)
                ending.execute()
        spent = time.perf_counter() - start
        connection.delete("bench:limit")
    return {"per_second": turns * batch / spent}


def client(calls: int) -> Values:
    """Requests per second of the HTTP client by itself, to a server on loopback that does nothing."""
    return {"per_second": http_targets.limit(calls)}
