"""The machine's own limit: rows inserted and updated twice in batches, with nothing in between.

This is what full history costs at the very least (planned, running, finished), on the same server, with the
same durability and in the same run as the scheduler, so that their ratio means something on any machine.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import redis

BATCH = 1000
TABLE = """create table bench_limit (
    id {id} primary key, job_id {id} not null, state text not null, scheduled_for {instant} not null,
    started_at {instant}, completed_at {instant}, attempt int not null default 0, result {json},
    error text)"""
INDEXES = (
    "create unique index bench_limit_slot on bench_limit (job_id, scheduled_for)",
    "create index bench_limit_open on bench_limit (scheduled_for) where state = 'queued'",
)


def _batches(total: int) -> list[list[str]]:
    return [[str(uuid.uuid4()) for _ in range(BATCH)] for _ in range(total // BATCH)]


def postgres(dsn: str, total: int = 20_000) -> float:
    """Executions per second with arrays and unnest, one commit per statement."""
    kinds = TABLE.format(id="uuid", instant="timestamptz", json="jsonb")
    insert = """insert into bench_limit (id, job_id, state, scheduled_for)
        select i, i, 'queued', %s from unnest(%s::uuid[]) as u(i)"""
    running = (
        "update bench_limit set state = 'running', started_at = %s, attempt = 1 where id = any(%s::uuid[])"
    )
    finished = "update bench_limit set state = 'completed', completed_at = %s where id = any(%s::uuid[])"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists bench_limit")
        for statement in (kinds, *INDEXES):
            connection.execute(statement)
        batches = _batches(total)
        start = time.perf_counter()
        for ids in batches:
            for statement in (insert, running, finished):
                connection.execute(statement, (datetime.now(UTC), ids))
        spent = time.perf_counter() - start
        connection.execute("drop table bench_limit")
    return total / spent


def sqlite(folder: Path, total: int = 20_000) -> float:
    """Executions per second with executemany, one commit per batch and step, WAL and synchronous=FULL."""
    connection = sqlite3.connect(folder / "limit.db", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    for statement in (TABLE.format(id="text", instant="text", json="text"), *INDEXES):
        connection.execute(statement)
    steps = (
        "insert into bench_limit (scheduled_for, state, id, job_id) values (?1, 'queued', ?2, ?2)",
        "update bench_limit set state = 'running', started_at = ?1, attempt = 1 where id = ?2",
        "update bench_limit set state = 'completed', completed_at = ?1 where id = ?2",
    )
    batches = _batches(total)
    start = time.perf_counter()
    for ids in batches:
        for statement in steps:
            now = datetime.now(UTC).isoformat()
            connection.execute("begin immediate")
            connection.executemany(statement, [(now, i) for i in ids])
            connection.execute("commit")
    spent = time.perf_counter() - start
    connection.close()
    return total / spent


def streams(url: str, total: int = 50_000, batch: int = 500) -> float:
    """Messages per second through a stream: added, read by a group, acknowledged and deleted, in batches."""
    with redis.Redis.from_url(url) as client:
        client.delete("bench:limit")
        client.xgroup_create("bench:limit", "limit", id="0", mkstream=True)
        start = time.perf_counter()
        for _ in range(total // batch):
            with client.pipeline(transaction=False) as adding:
                for _ in range(batch):
                    adding.xadd("bench:limit", {"id": "0" * 36})
                adding.execute()
            [(_, read)] = client.xreadgroup("limit", "one", {"bench:limit": ">"}, count=batch)
            receipts = [receipt for receipt, _ in read]
            with client.pipeline(transaction=False) as ending:
                ending.xack("bench:limit", "limit", *receipts)
                ending.xdel("bench:limit", *receipts)
                ending.execute()
        spent = time.perf_counter() - start
        client.delete("bench:limit")
    return total / spent
