"""Marks that tasks leave when they start: a file for each process, a record of fixed size for each start."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(os.environ.get("BENCH_MARKS", "."))
PG = os.environ.get("BENCH_PG", "")
REDIS = os.environ.get("BENCH_REDIS", "")
_RECORD = struct.Struct("<qdd")
_open: dict[int, int] = {}  # by process: a fork needs a file of its own


class Mark(NamedTuple):
    key: int
    due: float
    started: float


def mark(key: int = 0, due: float = 0.0) -> None:
    process = os.getpid()
    file = _open.get(process)
    if file is None:
        path = FOLDER / f"{process}.marks"
        file = _open[process] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, _RECORD.pack(key, due, time.time()))


def count(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.marks")) // _RECORD.size


def read(folder: Path) -> list[Mark]:
    """In the order of starts."""
    found = []
    for file in folder.glob("*.marks"):
        data = file.read_bytes()
        found += [Mark(*one) for one in _RECORD.iter_unpack(data[: len(data) // _RECORD.size * _RECORD.size])]
    return sorted(found, key=lambda one: one.started)


def clear(folder: Path) -> None:
    for file in folder.glob("*.marks"):
        file.unlink()


def empty_redis() -> None:
    import redis  # noqa: PLC0415 - a peer without Redis need not have it

    redis.Redis.from_url(REDIS).flushall()


def empty_postgres() -> None:
    import psycopg  # noqa: PLC0415 - likewise

    with psycopg.connect(PG, autocommit=True) as connection:
        connection.execute("drop schema public cascade")
        connection.execute("create schema public")
