"""The lock for users' code: one holder at a time, an end, renewal, and a number that only grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import pytest
import structlog
from sqlalchemy import select, update

from noonday import LockLost, Locks
from noonday.clock import SystemClock
from noonday.domain.errors import Conflict, Invalid
from noonday.ids import new_id
from noonday.leadership.lock import Lock
from noonday.redis_link import RedisLink
from noonday.store import locks as rows
from noonday.store.database import Database
from noonday.store.tables import locks as table

ONCE = timedelta()
SHORT = timedelta(milliseconds=600)
PATIENT = timedelta(seconds=20)


@pytest.fixture(params=["redis", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
async def locks(url: str) -> AsyncIterator[Locks]:
    async with Locks(url) as made:
        yield made


@pytest.fixture
async def others(url: str) -> AsyncIterator[Locks]:
    """Those of another program."""
    async with Locks(url) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"test:{new_id(SystemClock().now())}"


async def take_away(url: str, name: str) -> None:
    """As if the time of its holder had run out."""
    if url.startswith("redis"):
        link = RedisLink(url)
        await link.call("DEL", f"lock:{name}")
        await link.close()
        return
    db = Database(url)
    await db.write(lambda conn: conn.execute(update(table).where(table.c.name == name).values(owner=None)))
    await db.close()


async def test_only_one_holds_it(locks: Locks, others: Locks, name: str) -> None:
    mine, theirs = locks.lock(name), others.lock(name)
    assert await mine.acquire(ONCE)
    assert mine.held
    assert not await theirs.acquire(ONCE)
    assert not theirs.held
    assert await mine.release()
    assert not mine.held
    assert await theirs.acquire(ONCE)
    await theirs.release()


async def test_names_do_not_disturb_each_other(locks: Locks, name: str) -> None:
    async with locks.lock(name), locks.lock(f"{name}:other"):
        pass


async def test_a_crowd_takes_turns_and_the_number_grows(locks: Locks, others: Locks, name: str) -> None:
    inside = 0
    numbers: list[int] = []

    async def work(whose: Locks) -> None:
        nonlocal inside
        async with whose.lock(name) as lock:
            inside += 1
            assert inside == 1
            numbers.append(lock.fence)
            await asyncio.sleep(0.001)
            inside -= 1

    async with asyncio.timeout(60), asyncio.TaskGroup() as crowd:
        for number in range(12):
            crowd.create_task(work(locks if number % 2 else others))
    assert len(numbers) == 12
    assert all(earlier < later for earlier, later in pairwise(numbers))


async def test_it_waits_as_long_as_it_is_told(locks: Locks, others: Locks, name: str) -> None:
    loop = asyncio.get_running_loop()
    async with locks.lock(name):
        began = loop.time()
        assert not await others.lock(name).acquire(timedelta(seconds=0.3))
        assert 0.3 <= loop.time() - began < 10
        with pytest.raises(Conflict, match="held by somebody else"):
            async with others.lock(name, wait=timedelta(seconds=0.05)):
                pytest.fail("it is held")


async def test_whoever_waits_has_it_soon_after_the_release(locks: Locks, others: Locks, name: str) -> None:
    mine, theirs = locks.lock(name), others.lock(name)
    await mine.acquire(ONCE)
    waiting = asyncio.create_task(theirs.acquire())
    assert not (await asyncio.wait([waiting], timeout=0.2))[0]
    await mine.release()
    async with asyncio.timeout(10):
        assert await waiting
    await theirs.release()


async def test_it_is_renewed_for_as_long_as_it_is_held(locks: Locks, others: Locks, name: str) -> None:
    async with locks.lock(name, ttl=SHORT) as lock:
        for _ in range(4):
            assert not await others.lock(name).acquire(SHORT / 2)
            assert lock.held
    async with asyncio.timeout(10), others.lock(name):
        pass


async def test_without_renewal_it_ends_by_itself(locks: Locks, others: Locks, name: str) -> None:
    mine, theirs = locks.lock(name, ttl=SHORT, renew=False), others.lock(name)
    await mine.acquire(ONCE)
    assert await theirs.acquire(PATIENT)
    assert mine.lost
    assert not mine.held
    assert theirs.fence > mine.fence
    assert await mine.release() is False, "it was not ours any more"
    assert not await locks.lock(name).acquire(ONCE), "and theirs was left alone"
    with pytest.raises(LockLost):
        await mine.extend()
    await theirs.release()


async def test_it_can_be_extended_by_hand(locks: Locks, others: Locks, name: str) -> None:
    mine = locks.lock(name, ttl=timedelta(seconds=1), renew=False)
    await mine.acquire(ONCE)
    await mine.extend(timedelta(minutes=1))
    assert not await others.lock(name).acquire(timedelta(seconds=1.5))
    assert mine.held
    await mine.release()


async def test_a_lock_that_was_lost_stops_what_it_protects(locks: Locks, url: str, name: str) -> None:
    reached: list[str] = []

    async def work() -> None:
        async with asyncio.timeout(20), locks.lock(name, ttl=SHORT) as lock:
            await take_away(url, name)
            try:
                await asyncio.Event().wait()
            finally:
                reached.append(f"lost: {lock.lost}")

    with pytest.raises(LockLost, match="until the end"):
        await work()
    assert reached == ["lost: True"]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_lost_lock_is_told_to_a_logger_that_has_fields_of_its_own(
    locks: Locks, url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A program may hand our fields on to the standard logger, which refuses `name` and some others."""
    former = structlog.get_config()
    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )

    async def work() -> None:
        async with asyncio.timeout(20), locks.lock(name, ttl=SHORT):
            await take_away(url, name)
            await asyncio.Event().wait()

    try:
        with pytest.raises(LockLost):
            await work()
    finally:
        structlog.configure(**former)
    assert "a lock was lost" in caplog.messages


async def test_a_lock_that_ran_out_is_told_at_the_end(locks: Locks, name: str) -> None:
    async def work() -> None:
        async with locks.lock(name, ttl=timedelta(milliseconds=100), renew=False) as lock:
            while lock.held:
                await asyncio.sleep(0.01)

    with pytest.raises(LockLost):
        await work()


async def test_an_error_of_the_work_is_the_error_of_the_block(locks: Locks, name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with locks.lock(name):
            _ = 1 // 0
    assert await locks.lock(name).acquire(ONCE)


async def test_cancelling_the_work_frees_the_lock(locks: Locks, others: Locks, name: str) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with locks.lock(name):
            inside.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await inside.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    theirs = others.lock(name)
    assert await theirs.acquire(ONCE)
    await theirs.release()


async def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind(
    locks: Locks, others: Locks, name: str
) -> None:
    for turns in (0, 1, 3, 10, 40):
        mine = locks.lock(name)
        waiting = asyncio.create_task(mine.acquire())
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        done, _ = await asyncio.wait([waiting], timeout=10)
        assert done
        if not waiting.cancelled():  # it had it before it was told
            assert await mine.release()
        theirs = others.lock(name)
        assert await theirs.acquire(ONCE)
        await theirs.release()


async def test_one_object_holds_it_once_at_a_time(locks: Locks, name: str) -> None:
    lock = locks.lock(name)
    assert await lock.release() is False
    with pytest.raises(LockLost):
        await lock.extend()
    async with lock:
        with pytest.raises(Conflict, match="already held"):
            await lock.acquire(ONCE)
    first = lock.fence
    async with lock:
        assert lock.fence > first


@pytest.mark.parametrize("bad", ["", "x" * 201, "two\nlines", "nul\0"])
async def test_it_refuses_a_name_that_nobody_could_read(locks: Locks, bad: str) -> None:
    with pytest.raises(Invalid, match="printable"):
        locks.lock(bad)


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(milliseconds=99), timedelta(days=2)])
async def test_it_refuses_a_time_to_live_that_cannot_work(locks: Locks, ttl: timedelta) -> None:
    with pytest.raises(Invalid, match="ttl"):
        locks.lock("name", ttl=ttl)


async def test_locks_are_used_while_they_are_open(url: str) -> None:
    locks = Locks(url)
    with pytest.raises(Conflict, match="not open"):
        locks.lock("name")
    async with locks:
        assert isinstance(locks.lock("name"), Lock)
    with pytest.raises(Conflict, match="not open"):
        locks.lock("name")


async def test_what_is_still_held_is_released_when_they_close(url: str, others: Locks, name: str) -> None:
    async with Locks(url) as locks:
        mine = locks.lock(name)
        assert await mine.acquire(ONCE)
    assert not mine.held
    assert await others.lock(name).acquire(ONCE)


async def test_rows_of_names_that_nobody_uses_are_forgotten_and_the_number_grows_on(db: Database) -> None:
    def first(name: str) -> int | None:
        return db.write_now(lambda conn: rows.take(conn, name, "me", SHORT, SystemClock().now()))

    old = first("old")
    first("new")
    long_ago = SystemClock().now() - timedelta(days=2)
    await db.write(
        lambda conn: conn.execute(update(table).where(table.c.name == "old").values(expires_at=long_ago))
    )
    assert await db.write(lambda conn: rows.forget(conn, SystemClock().now())) == 1
    assert await db.read(lambda conn: list(conn.execute(select(table.c.name)).scalars())) == ["new"]
    again = first("old")
    assert old is not None
    assert again is not None
    assert again > old
