"""The threads of the store tell a busy event loop when they wait for it, and when it could go on."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterator

import pytest

from noonday.store.database import Database
from noonday.store.threads import Standing, Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(1, "tested", lambda: False)
    yield made
    made.end()


async def test_what_was_asked_for_and_has_not_begun_waits(threads: Threads) -> None:
    held = threading.Event()
    threads._pool.submit(held.wait, 10)  # it has not come to us yet
    first = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0)
    assert threads.waiting()
    held.set()
    await first
    assert not threads.waiting()


async def test_what_is_behind_others_waits_for_them_and_not_for_the_loop(threads: Threads) -> None:
    go, began = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        go.wait(10)

    first = asyncio.create_task(threads.run(hold))
    await asyncio.sleep(0)
    began.wait(10)
    second = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0)
    assert not threads.waiting()
    go.set()
    await asyncio.gather(first, second)


async def test_what_is_done_is_brought_until_it_is_heard(threads: Threads) -> None:
    task = asyncio.create_task(threads.run(lambda: 7))
    await asyncio.sleep(0)
    threads.run_now(lambda: None)  # there is one thread: the other is done
    assert threads.brought
    assert await task == 7
    assert not threads.brought


async def test_a_failure_is_brought_too(threads: Threads) -> None:
    def fail() -> None:
        raise LookupError("nothing there")

    task = asyncio.create_task(threads.run(fail))
    await asyncio.sleep(0)
    threads.run_now(lambda: None)
    assert threads.brought
    with pytest.raises(LookupError, match="nothing there"):
        await task
    assert not threads.brought


async def test_whoever_is_cancelled_leaves_no_trace(threads: Threads) -> None:
    go = threading.Event()
    running = asyncio.create_task(threads.run(lambda: go.wait(10)))
    queued = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0)
    for task in (running, queued):
        task.cancel()
    await asyncio.gather(running, queued, return_exceptions=True)
    assert not threads.waiting()
    go.set()
    assert await threads.run(lambda: 1) == 1
    assert not threads.brought


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="the system has no such clocks")
def test_a_thread_stands_still_while_it_waits_and_not_while_it_works() -> None:
    standing = Standing()
    work, go, ready = threading.Event(), threading.Event(), threading.Event()

    def live() -> None:
        standing.begin()
        standing.busy(True)
        ready.set()
        go.wait(10)
        while not work.is_set():
            _work()

    thread = threading.Thread(target=live)
    thread.start()
    assert ready.wait(10)
    _until(standing, True)
    go.set()
    _until(standing, False)
    standing.busy(False)
    work.set()
    thread.join(10)
    assert not standing.still()


def _work() -> None:
    """Most of a millisecond, in which other threads work too."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1000)


def _until(standing: Standing, still: bool) -> None:
    for _ in range(10_000):
        standing.still()
        _work()
        if standing.still() is still:
            return
    raise AssertionError(f"it never was {still}")


def test_without_such_clocks_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("noonday.store.threads.time.pthread_getcpuclockid", raising=False)
    standing = Standing()
    standing.begin()
    standing.busy(True)
    assert not standing.still()


async def test_a_database_at_rest_waits_for_nobody(db: Database) -> None:
    assert await db.read(lambda conn: conn.exec_driver_sql("SELECT 1").scalar()) == 1
    assert await db.write(lambda conn: conn.exec_driver_sql("SELECT 2").scalar()) == 2
    assert not db.threads.waiting()
    assert not db.threads.brought
