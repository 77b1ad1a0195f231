"""Taking from the streams: order, shares, limits, and what strangers put there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import chain

import pytest

from noonday.domain.job import Lane
from noonday.ports import Parcel
from tests.queue.roads import MOMENT, NOW, SECOND, Road, an_id, ids, parcels, until


async def test_it_delivers_in_the_order_of_the_lanes_and_then_of_arrival(road: Road) -> None:
    one = road.instance()
    low, normal, high = (parcels(2, lane) for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH))
    await one.put([*low, *normal, *high])
    taken = await one.take(6, NOW)
    assert ids(taken) == ids([*high, *normal, *low])
    assert [delivery.lane for delivery in taken] == sorted(delivery.lane for delivery in taken)


async def test_it_never_delivers_more_than_asked(road: Road) -> None:
    one = road.instance()
    await one.put([*parcels(5, Lane.LOW), *parcels(5, Lane.HIGH)])
    assert len(await one.take(3, NOW)) == 3
    assert await one.take(0, SECOND) == []
    assert len(await one.take(100, NOW)) == 7
    assert await one.take(100, NOW) == []


async def test_it_starves_no_lane_while_a_higher_one_is_full(road: Road) -> None:
    one = road.instance()
    await one.put([Parcel(lane, an_id()) for lane in Lane for _ in range(200)])
    served = Counter([delivery.lane for _ in range(160) for delivery in await one.take(1, NOW)])
    assert served.total() == 160
    assert served[Lane.HIGH] == pytest.approx(140, abs=2)
    assert served[Lane.NORMAL] == pytest.approx(10, abs=1)
    assert served[Lane.LOW] == pytest.approx(10, abs=1)


async def test_it_gives_large_batches_their_share_too(road: Road) -> None:
    one = road.instance()
    await one.put([Parcel(lane, an_id()) for lane in (Lane.HIGH, Lane.LOW) for _ in range(300)])
    served = Counter([delivery.lane for _ in range(10) for delivery in await one.take(24, NOW)])
    assert served.total() == 240
    assert served[Lane.LOW] == pytest.approx(30, abs=3)


async def test_it_gives_the_share_to_others_when_nobody_claims_it(road: Road) -> None:
    one = road.instance()
    await one.put(parcels(100, Lane.HIGH))
    assert [len(await one.take(10, NOW)) for _ in range(11)] == [10] * 10 + [0]


async def test_it_waits_for_a_parcel_and_returns_at_once_when_one_comes(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.prepare()
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(one.take(5, timedelta(seconds=20)))
        await until(lambda: _someone_is_blocked(road))
        sent = parcels(1, Lane.LOW)
        await other.put(sent)
        async with asyncio.timeout(5):
            assert ids(await taking) == ids(sent)


async def test_it_wakes_to_all_that_was_put_together(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.prepare()
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(one.take(300, timedelta(seconds=20)))
        await until(lambda: _someone_is_blocked(road))
        sent = parcels(100)
        await other.put(sent)
    assert ids(taking.result()) == ids(sent)


async def test_it_returns_nothing_when_the_wait_is_over(road: Road) -> None:
    async with asyncio.timeout(3):
        assert await road.instance().take(5, MOMENT) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_it_keeps_to_the_limit_when_several_lanes_wake_it_at_once(road: Road, limit: int) -> None:
    one = road.instance()
    await one.prepare()
    sent = [Parcel(lane, an_id()) for lane in Lane for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(one.take(limit, timedelta(seconds=20)))
        await until(lambda: _someone_is_blocked(road))
        # One MULTI: when the reader wakes, there is something in each lane.
        adding = [("XADD", road.keys[parcel.lane], "*", "id", parcel.execution_id) for parcel in sent]
        await road.link.pipeline(adding, atomic=True)
    first = taking.result()
    assert 1 <= len(first) <= limit
    rest = await one.take(10, NOW)
    assert sorted(ids([*first, *rest])) == sorted(ids(sent))


async def test_it_never_gives_one_parcel_to_two_instances(road: Road) -> None:
    sent = parcels(500, Lane.NORMAL) + parcels(500, Lane.LOW)
    await road.instance().put(sent)

    async def take_all(name: str) -> list[str]:
        mine, instance = [], road.instance(name)
        while taken := await instance.take(7, NOW):
            mine += ids(taken)
        return mine

    got = await asyncio.gather(*(take_all(f"i{n}") for n in range(4)))
    assert sorted(chain(*got)) == sorted(ids(sent))


async def test_it_puts_more_than_a_page_and_takes_it_back_in_order(road: Road) -> None:
    one, sent = road.instance(), parcels(2500)
    await one.put(sent)
    await one.put([])
    taken = await one.take(3000, NOW)
    assert ids(taken) == ids(sent)
    await one.ack(taken)
    assert await road.length() == 0


BAD = {
    "no id": ("name", "value"),
    "empty": ("id", ""),
    "no uuid": ("id", "42"),
    "almost": ("id", "0198c1a8-0000-7000-8000-00000000000g"),
    "with braces": ("id", "{0198c1a8-0000-7000-8000-000000000001}"),
    "bytes that are no text": ("id", b"\xff\xfe\x00\r\n"),
    "long": ("id", "x" * 100_000),
    "other case": ("ID", "0198c1a8-0000-7000-8000-000000000001"),
}


@pytest.mark.parametrize("fields", BAD.values(), ids=list(BAD))
async def test_it_removes_what_names_no_execution_and_goes_on(
    road: Road, fields: tuple[str | bytes, str | bytes], log_lines: Callable[[], str]
) -> None:
    one = road.instance()
    receipt = await road.add_raw(*fields)
    good = parcels(1)
    await one.put(good)
    assert ids(await one.take(5, NOW)) == ids(good)
    assert list(await road.pending()) != [receipt]
    assert await road.length() == 1
    told = log_lines()
    assert told.count("removed from the road") == 1
    assert receipt in told
    assert await one.take(5, NOW) == []
    assert "removed" not in log_lines()


async def test_it_reads_an_id_among_other_fields_and_in_capitals(road: Road) -> None:
    one, named = road.instance(), an_id()
    await road.add_raw("trace", "1", "id", named.upper())
    assert ids(await one.take(5, NOW)) == [named]


async def test_it_loses_nothing_when_a_waiting_take_is_cancelled(road: Road) -> None:
    """Whether the message came before or after: it is in nobody's hands, or `mine` finds it."""
    one, other = road.instance("one"), road.instance("other")
    await one.prepare()
    found = 0
    for pause in [n / 4000 for n in range(40)]:
        sent = parcels(1)
        taking = asyncio.ensure_future(one.take(1, timedelta(seconds=5)))
        await asyncio.sleep(0.002)
        putting = asyncio.ensure_future(other.put(sent))
        await asyncio.sleep(pause)
        taking.cancel()
        taken = await asyncio.gather(taking, return_exceptions=True)
        await putting
        delivered = [] if isinstance(taken[0], BaseException) else taken[0]
        in_hands = await one.mine()
        assert set(ids(delivered)) <= set(ids(in_hands))
        waiting = await other.take(5, NOW)
        assert ids([*in_hands, *waiting]) == ids(sent)
        found += len(in_hands)
        await one.ack([*in_hands, *waiting])
    assert found > 0  # else it was cancelled too early each time


async def test_it_has_a_sound_connection_after_each_cancelled_call(road: Road) -> None:
    one = road.instance()
    await one.prepare()
    for pause in [n / 10_000 for n in range(50)]:
        call = asyncio.ensure_future(one.take(1, SECOND))
        await asyncio.sleep(pause)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        token = an_id()
        assert await road.link.call("ECHO", token) == token
    assert await road.link.call("PING") == "PONG"


async def _someone_is_blocked(road: Road) -> bool:
    told: str = await road.link.call("CLIENT", "LIST")
    return any("cmd=xreadgroup" in line and "flags=b" in line for line in told.splitlines())
