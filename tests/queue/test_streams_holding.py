"""What is in somebody's hands: acknowledged, handed back, kept, abandoned, found again after a restart."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from noonday.domain.job import Lane
from noonday.ports import Delivery, Parcel
from tests.queue.roads import NOW, Road, an_id, ids, parcels, until


async def test_it_removes_what_is_acknowledged_and_ignores_what_it_does_not_know(road: Road) -> None:
    one = road.instance()
    await one.put([Parcel(lane, an_id()) for lane in Lane])
    taken = await one.take(3, NOW)
    stranger = Delivery(Lane.LOW, an_id(), "1-1")
    await one.ack([*taken, stranger])
    await one.ack(taken)
    await one.ack([])
    for lane in Lane:
        assert await road.pending(lane) == {}
        assert await road.length(lane) == 0
    assert await one.mine() == []


async def test_it_lets_another_instance_acknowledge(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.put(parcels(1))
    await other.ack(await one.take(1, NOW))
    assert await one.mine() == []
    assert await road.length() == 0


async def test_it_hands_back_to_another_instance(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    sent = [Parcel(lane, an_id()) for lane in Lane for _ in range(2)]
    await one.put(sent)
    taken = await one.take(6, NOW)
    await one.hand_back(taken[:4])
    await one.hand_back([])
    assert ids(await one.mine()) == ids(taken[4:])
    assert ids(await other.take(6, NOW)) == ids(taken[:4])


async def test_it_hands_back_in_a_step_that_nobody_can_split(road: Road) -> None:
    """Whoever looks, at any moment, finds each parcel on the road."""
    one, sent = road.instance("one"), parcels(50)
    await one.put(sent)

    async def move_about() -> None:
        for _ in range(20):
            await one.hand_back(await one.take(50, NOW))

    async def look() -> int:
        looks = 0
        while not moving.done():
            assert await road.instance("watcher").missing(sent) == []
            looks += 1
        return looks

    async with asyncio.TaskGroup() as group:
        moving = group.create_task(move_about())
        looking = group.create_task(look())
    assert looking.result() > 5
    assert await road.length() == 50


async def test_it_hands_back_what_the_road_forgot(road: Road) -> None:
    one = road.instance()
    await one.put(parcels(1))
    taken = await one.take(1, NOW)
    await road.forget()
    await one.hand_back(taken)
    assert ids(await road.instance("other").take(1, NOW)) == ids(taken)


async def test_it_hands_back_under_the_same_number_what_the_road_forgot(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one millisecond a road without a memory gives the same number again."""
    one = road.instance()
    await one.put(parcels(1))
    taken = await one.take(1, NOW)
    await road.forget()
    add, number = one._add, taken[0].receipt
    monkeypatch.setattr(one, "_add", lambda parcel: [number if x == "*" else x for x in add(parcel)])
    await one.hand_back(taken)
    assert ids(await road.instance("other").take(1, NOW)) == ids(taken)


async def test_it_finds_the_abandoned_and_leaves_the_kept_alone(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.put([Parcel(lane, an_id()) for lane in Lane for _ in range(2)])
    taken = await one.take(6, NOW)
    kept, left = taken[::2], taken[1::2]
    idle = timedelta(milliseconds=300)
    found: list[Delivery] = []

    async def all_found() -> bool:
        await one.keep(kept)
        found.extend(await other.abandoned(idle, 10))
        return len(found) >= len(left)

    await until(all_found)
    assert sorted(ids(found)) == sorted(ids(left))
    assert sorted(ids(await one.mine())) == sorted(ids(kept))
    assert sorted(ids(await other.mine())) == sorted(ids(left))


async def test_it_counts_no_delivery_for_what_is_kept(road: Road) -> None:
    one = road.instance()
    await one.put(parcels(1))
    taken = await one.take(1, NOW)
    for _ in range(3):
        await one.keep(taken)
    rows = await road.link.call("XPENDING", road.keys[Lane.NORMAL], "scheduler", "-", "+", 10)
    assert rows[0][3] == 1


async def test_it_never_raises_the_dead_by_keeping_them(road: Road) -> None:
    one = road.instance()
    await one.put(parcels(3))
    taken = await one.take(3, NOW)
    await one.ack(taken[:1])
    key = road.keys[Lane.NORMAL]
    await road.link.call("XACK", key, "scheduler", taken[1].receipt)  # not deleted: an ack cut in half
    await one.keep([*taken, Delivery(Lane.LOW, an_id(), "5-5")])
    await one.keep([])
    assert await road.pending() == {taken[2].receipt: "one"}
    assert ids(await one.mine()) == ids(taken[2:])


async def test_it_takes_back_by_keeping_what_another_took_for_abandoned(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.put(parcels(1))
    taken = await one.take(1, NOW)
    assert ids(await other.abandoned(NOW, 5)) == ids(taken)
    await one.keep(taken)
    assert ids(await one.mine()) == ids(taken)
    assert await other.mine() == []


async def test_it_comes_round_page_by_page(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.put([*parcels(20, Lane.LOW), *parcels(10, Lane.HIGH)])
    taken = await one.take(30, NOW)
    await until(lambda: _all_idle(road, 50))
    pages = [await other.abandoned(timedelta(milliseconds=50), 10) for _ in range(4)]
    assert all(len(page) <= 10 for page in pages)
    first_round = [delivery for page in pages for delivery in page][:30]
    assert sorted(ids(first_round)) == sorted(ids(taken))
    await until(lambda: _all_idle(road, 50))
    again = [one for _ in range(5) for one in await other.abandoned(timedelta(milliseconds=50), 10)]
    assert set(ids(again)) >= set(ids(taken[:10]))


async def test_it_asks_each_lane_first_serially(road: Road) -> None:
    """However much of the one is abandoned, the others are looked at too."""
    one, other = road.instance("one"), road.instance("other")
    await one.put([*parcels(4, Lane.HIGH), *parcels(1, Lane.LOW), *parcels(1)])
    await one.take(6, NOW)
    found = [delivery.lane for _ in range(3) for delivery in await other.abandoned(NOW, 2)]
    assert set(found) == set(Lane)


async def test_it_finds_one_idle_message_behind_a_crowd_of_young_ones(road: Road) -> None:
    """XAUTOCLAIM looks at ten times COUNT and stops; the cursor goes on from there."""
    one, other = road.instance("one"), road.instance("other")
    await one.put(parcels(60))
    taken = await one.take(60, NOW)
    await road.link.call(
        "XCLAIM",
        road.keys[Lane.NORMAL],
        "scheduler",
        "one",
        0,
        taken[-1].receipt,
        "IDLE",
        10_000_000,
        "JUSTID",
    )
    calls = [ids(await other.abandoned(timedelta(hours=1), 2)) for _ in range(4)]
    assert calls.count(ids(taken[-1:])) == 1
    assert calls[0] == []


async def test_it_finds_all_that_an_earlier_process_of_its_name_left(road: Road) -> None:
    sent = [*parcels(1200), *parcels(3, Lane.HIGH), *parcels(3, Lane.LOW)]
    await road.instance("one").put(sent)
    taken = await road.instance("one").take(2000, NOW)
    await road.instance("two").put(parcels(1))
    assert len(await road.instance("two").take(1, NOW)) == 1
    again = road.instance("one")
    found = await again.mine()
    assert sorted(ids(found)) == sorted(ids(taken))
    await again.ack(found)
    assert await again.mine() == []


async def test_it_clears_away_what_was_deleted_while_it_was_held(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.put(parcels(6))
    taken = await one.take(6, NOW)
    gone = [delivery.receipt for delivery in taken[::2]]
    await road.link.call("XDEL", road.keys[Lane.NORMAL], *gone[:2])
    assert ids(await one.mine()) == ids([delivery for delivery in taken if delivery.receipt not in gone[:2]])
    await road.link.call("XDEL", road.keys[Lane.NORMAL], gone[2])
    assert ids(await other.abandoned(NOW, 10)) == ids(taken[1::2])
    assert await road.pending() == {delivery.receipt: "other" for delivery in taken[1::2]}


async def test_it_clears_away_strangers_messages_that_were_abandoned(road: Road) -> None:
    one, other = road.instance("one"), road.instance("other")
    await one.prepare()
    await road.add_raw("name", "value")
    reading = ("GROUP", "scheduler", "one", "STREAMS", road.keys[Lane.NORMAL], ">")
    await road.link.call("XREADGROUP", *reading)
    assert await other.abandoned(NOW, 10) == []
    assert await road.length() == 0


async def _all_idle(road: Road, millis: int) -> bool:
    for lane in Lane:
        rows = await road.link.call("XPENDING", road.keys[lane], "scheduler", "-", "+", 100)
        if any(row[2] < millis for row in rows):
            return False
    return True
