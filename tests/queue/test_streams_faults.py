"""A Redis that forgets, vanishes, refuses, or is not fit for the task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.errors import RoadDown
from noonday.domain.job import Lane
from noonday.ports import Delivery
from noonday.queue import fitness
from noonday.queue.redis_streams import RedisStreams
from tests.queue.roads import MOMENT, NOW, SECOND, Road, an_id, ids, opened, parcels, until
from tests.servers import Server

DELIVERY = Delivery(Lane.NORMAL, an_id(), "1-0")
VERBS: dict[str, Callable[[RedisStreams], Awaitable[Any]]] = {
    "check": lambda one: one.check(),
    "put": lambda one: one.put(parcels(3)),
    "take": lambda one: one.take(3, MOMENT),
    "ack": lambda one: one.ack([DELIVERY]),
    "hand_back": lambda one: one.hand_back([DELIVERY]),
    "keep": lambda one: one.keep([DELIVERY]),
    "abandoned": lambda one: one.abandoned(SECOND, 5),
    "mine": lambda one: one.mine(),
    "missing": lambda one: one.missing(parcels(2)),
    "tidy": lambda one: one.tidy(()),
    "depths": lambda one: one.depths(),
}


async def test_it_has_its_groups_from_the_first_moment(road: Road) -> None:
    assert await road.instance().check() == []
    for key in road.keys.values():
        (group,) = await road.link.call("XINFO", "GROUPS", key)
        assert group[:2] == ["name", "scheduler"]
    one = road.instance()
    await one.check()
    assert one.forgotten == 0


async def test_it_delivers_what_was_put_before_there_was_a_group(road: Road) -> None:
    sent = parcels(3)
    await road.instance("writer").put(sent)
    assert ids(await road.instance("reader").take(5, NOW)) == ids(sent)


@pytest.mark.parametrize("verb", VERBS)
async def test_it_works_on_after_everything_was_flushed(own_road: Road, verb: str) -> None:
    one = own_road.instance()
    await one.put(parcels(2))
    assert len(await one.take(1, NOW)) == 1
    await own_road.link.call("FLUSHALL")
    await VERBS[verb](one)
    sent = parcels(2)
    await one.put(sent)
    assert set(ids(sent)) <= set(ids(await one.take(9, SECOND)))
    assert one.forgotten == 1


async def test_it_notices_a_flush_while_it_waits(own_road: Road, log_lines: Callable[[], str]) -> None:
    one, other = own_road.instance("one"), own_road.instance("other")
    await one.prepare()
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(one.take(5, timedelta(seconds=20)))
        await until(lambda: _blocked(own_road))
        await own_road.link.call("FLUSHALL")
        sent = parcels(1)
        await other.put(sent)
        async with asyncio.timeout(5):
            assert ids(await taking) == ids(sent)
    assert one.forgotten == 1
    assert log_lines().count("made anew") == 1


async def test_it_counts_one_loss_for_many_that_notice_it(own_road: Road) -> None:
    one = own_road.instance()
    await one.prepare()
    await own_road.link.call("FLUSHALL")
    await asyncio.gather(one.take(1, NOW), one.mine(), one.abandoned(SECOND, 1), one.keep([DELIVERY]))
    assert one.forgotten == 1


async def test_it_repairs_a_lane_while_the_others_keep_it_busy(own_road: Road) -> None:
    one = own_road.instance()
    await one.prepare()
    first, second, low = parcels(1, Lane.HIGH), parcels(1, Lane.HIGH), parcels(1, Lane.LOW)
    await one.put([*first, *low])
    await own_road.link.call("XGROUP", "DESTROY", own_road.keys[Lane.LOW], "scheduler")
    assert ids(await one.take(5, NOW)) == ids(first)
    assert one.forgotten == 1
    await one.put(second)
    assert ids(await one.take(5, NOW)) == ids([*second, *low])
    assert one.forgotten == 1


async def test_it_makes_no_hot_loop_of_a_server_that_keeps_forgetting(own_road: Road) -> None:
    one = own_road.instance()
    await one.prepare()
    stop = time.monotonic() + 0.9
    losses = 0
    while time.monotonic() < stop:
        await own_road.link.call("FLUSHALL")
        await one.take(1, NOW)
        losses += 1
    assert one.forgotten == losses
    assert losses <= 4


async def test_it_calms_down_after_the_server_remembers_again(own_road: Road) -> None:
    one = own_road.instance()
    await one.prepare()
    for _ in range(3):
        await own_road.link.call("FLUSHALL")
        await one.take(1, NOW)
    assert one._groups._pause() > 0
    for _ in range(10):
        await one.take(1, NOW)
    assert one._groups._pause() == 0
    await own_road.link.call("FLUSHALL")
    await one.take(1, NOW)
    assert one.forgotten == 4


async def test_it_says_in_time_that_the_road_is_down_and_comes_back(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        one = Road(link).instance()
        for verb in VERBS.values():
            await verb(one)
        own_server.halt()
        for verb in [*VERBS.values()] * 2:
            await _is_down(verb(one), seconds=3)
        own_server.start()
        for verb in VERBS.values():
            await verb(one)


async def test_it_does_not_wait_for_ever_for_a_server_that_is_silent(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        one = Road(link).instance()
        for verb in VERBS.values():
            await verb(one)
        own_server.pause()
        try:
            told = await asyncio.gather(*(_is_down(verb(one), seconds=4) for verb in VERBS.values()))
        finally:
            own_server.unpause()
        assert all("no answer within" in reason for reason in told)
        for verb in VERBS.values():
            await verb(one)
        assert await link.call("PING") == "PONG"


async def test_it_loses_nothing_when_the_server_dies_under_a_waiting_take(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        road = Road(link)
        one = road.instance()
        await one.prepare()
        taking = asyncio.ensure_future(one.take(5, timedelta(seconds=20)))
        await until(lambda: _blocked(road))
        own_server.kill()
        async with asyncio.timeout(2):
            with pytest.raises(RoadDown):
                await taking
        own_server.start()
        sent = parcels(1)
        await one.put(sent)
        assert ids(await one.take(5, SECOND)) == ids(sent)
        assert one.forgotten == 1


async def test_it_says_what_is_wrong_with_the_eviction_policy(own_road: Road) -> None:
    one = own_road.instance()
    await own_road.link.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert await one.check() == []  # without a limit nothing is evicted
    await own_road.link.call("CONFIG", "SET", "maxmemory", "100mb")
    (doubt,) = await one.check()
    assert "allkeys-lru" in doubt
    assert "noeviction" in doubt
    await own_road.link.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert await one.check() == []


async def test_it_checks_where_much_is_forbidden(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        allowed = ["on", ">s3cret", "~*", "&*", "+@all", "-@admin", "-@dangerous"]
        await link.call("ACL", "SETUSER", "app", *allowed, "+info")
        await link.call("ACL", "SETUSER", "dumb", *allowed, "-info")
        address = own_server.url.removeprefix("redis://")
        async with opened(f"redis://app:s3cret@{address}") as app:
            assert await Road(app).instance().check() == []
        async with opened(f"redis://dumb:s3cret@{address}") as dumb:
            road = Road(dumb)
            (doubt,) = await road.instance().check()
            assert "does not tell" in doubt
            assert len(await road.link.call("XINFO", "GROUPS", road.keys[Lane.LOW])) == 1


@pytest.mark.parametrize(
    ("version", "fit"),
    [("6.0.16", False), ("5.0.7", False), ("6.2.0", True), ("7.2.4", True), ("10.0.1", True), ("", True)],
)
def test_it_asks_for_a_version_that_can(version: str, fit: bool) -> None:
    found = fitness.too_old({"redis_version": version})
    assert (found is None) is fit
    assert found is None or version in found


async def test_it_is_down_when_the_memory_is_full_and_up_when_it_is_not(own_road: Road) -> None:
    one = own_road.instance()
    await one.prepare()
    await own_road.link.call("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(RoadDown, match="memory"):
        await one.put(parcels(1))
    with pytest.raises(RoadDown, match="memory"):
        await one.hand_back([DELIVERY])
    await own_road.link.call("CONFIG", "SET", "maxmemory", "0")
    await one.put(parcels(1))


async def test_it_puts_what_it_can_when_one_lane_refuses(road: Road) -> None:
    await road.link.call("SET", road.keys[Lane.HIGH], "mine")
    one = road.instance()
    with pytest.raises(RoadDown, match="WRONGTYPE"):
        await one.put([*parcels(2, Lane.HIGH), *parcels(3, Lane.LOW)])
    assert await road.length(Lane.LOW) == 3


async def test_it_is_down_when_something_else_has_the_streams_name(road: Road) -> None:
    await road.link.call("SET", road.keys[Lane.HIGH], "mine")
    one = road.instance()
    for work in (one.put(parcels(1, Lane.HIGH)), one.take(1, NOW), one.check(), one.depths()):
        assert "WRONGTYPE" in await _is_down(work, seconds=3)


async def _is_down(work: Awaitable[object], seconds: float) -> str:
    with pytest.raises(RoadDown) as down:
        async with asyncio.timeout(seconds):
            await work
    assert "\n" not in str(down.value)
    return str(down.value)


async def _blocked(road: Road) -> bool:
    told: str = await road.link.call("CLIENT", "LIST")
    return any("cmd=xreadgroup" in line and "flags=b" in line for line in told.splitlines())
