"""Marks that tasks leave when they start: a file for each process, a record of fixed size for each start.

The file is mapped into memory. To write a mark is no call of the system: it would cost as much as some tasks,
and more where a thread that waits for the interpreter is woken by it.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from bisect import bisect_left
from itertools import count as counter
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(os.environ.get("BENCH_MARKS", "."))
PG = os.environ.get("BENCH_PG", "")
REDIS = os.environ.get("BENCH_REDIS", "")
_RECORD = struct.Struct("<qdd")
_ON_A_PAGE = 2048  # records: together a multiple of what systems map at once


class Mark(NamedTuple):
    key: int
    due: float
    started: float


class _Book:
    """The marks of one process, whose threads may write at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._places = counter()
        self._pages: list[mmap.mmap] = []
        self._turning = threading.Lock()

    def write(self, key: int, due: float) -> None:
        page, place = divmod(next(self._places), _ON_A_PAGE)
        if page >= len(self._pages):
            self._turn_to(page)
        _RECORD.pack_into(self._pages[page], place * _RECORD.size, key, due, time.time())

    def _turn_to(self, page: int) -> None:
        size = _ON_A_PAGE * _RECORD.size
        with self._turning:
            while page >= len(self._pages):
                end = len(self._pages) * size
                os.ftruncate(self._file, end + size)
                self._pages.append(mmap.mmap(self._file, size, offset=end))


_books: dict[int, _Book] = {}  # by process: a fork needs a file of its own
_opening = threading.Lock()


def mark(key: int = 0, due: float = 0.0) -> None:
    book = _books.get(os.getpid()) or _opened(os.getpid())
    book.write(key, due)


def _opened(process: int) -> _Book:
    with _opening:
        if process not in _books:
            _books[process] = _Book(FOLDER / f"{process}.marks")
        return _books[process]


def count(folder: Path) -> int:
    return sum(_written(file) for file in folder.glob("*.marks"))


def _written(file: Path) -> int:
    """Places are filled in their order: the first one without a mark is looked for by halves."""
    with file.open("rb") as pages:

        def is_empty(place: int) -> bool:
            return not _RECORD.unpack(os.pread(pages.fileno(), _RECORD.size, place * _RECORD.size))[2]

        return bisect_left(range(file.stat().st_size // _RECORD.size), True, key=is_empty)


def read(folder: Path) -> list[Mark]:
    """In the order of starts."""
    found = []
    for file in folder.glob("*.marks"):
        data = file.read_bytes()
        found += [Mark(*one) for one in _RECORD.iter_unpack(data[: len(data) // _RECORD.size * _RECORD.size])]
    return sorted((one for one in found if one.started), key=lambda one: one.started)


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
