"""Which executions the road has lost, how deep it is, and what is cleared away."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from noonday.domain.job import Lane
from noonday.ports import Parcel
from noonday.queue import census, tidying
from tests.queue.roads import NOW, Road, an_id, ids, parcels


async def test_it_misses_neither_the_waiting_nor_the_held_but_the_rest(road: Road) -> None:
    one = road.instance()
    sent = [Parcel(lane, an_id()) for lane in Lane for _ in range(3)]
    await one.put(sent)
    taken = await one.take(5, NOW)
    await one.ack(taken[:2])
    never_sent = parcels(2)
    gone = await road.instance("other").missing([*sent, *never_sent])
    assert sorted(ids(gone)) == sorted(ids([*taken[:2], *never_sent]))
    assert await one.missing([]) == []


async def test_it_misses_what_was_acknowledged_but_not_deleted(road: Road) -> None:
    one, sent = road.instance(), parcels(3)
    await one.put(sent)
    taken = await one.take(2, NOW)
    await road.link.call("XACK", road.keys[Lane.NORMAL], "scheduler", taken[0].receipt)
    assert await road.length() == 3
    assert await one.missing(sent) == sent[:1]


async def test_it_misses_everything_without_the_stream_or_its_group(road: Road) -> None:
    one, sent = road.instance(), parcels(2) + parcels(1, Lane.HIGH)
    assert await one.missing(sent) == sent
    await one.put(sent)  # a stream without a group reaches nobody
    assert await one.missing(sent) == sent
    await one.prepare()
    assert await one.missing(sent) == []
    await road.link.call("XGROUP", "DESTROY", road.keys[Lane.NORMAL], "scheduler")
    assert await one.missing(sent) == sent[:2]
    await road.forget()
    assert await one.missing(sent) == sent


async def test_it_misses_what_lies_in_another_lane(road: Road) -> None:
    one, named = road.instance(), an_id()
    await one.prepare()
    await one.put([Parcel(Lane.HIGH, named)])
    assert await one.missing([Parcel(Lane.LOW, named)]) == [Parcel(Lane.LOW, named)]


async def test_it_goes_through_all_pages(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "_PAGE", 10)
    one, sent = road.instance(), parcels(95)
    await one.put(sent)
    taken = await one.take(45, NOW)
    await one.ack(taken[3:6])
    never_sent = parcels(1)
    assert await one.missing([*sent, *never_sent]) == [*sent[3:6], *never_sent]


@pytest.mark.parametrize("delivered", [0, 95])
async def test_it_takes_for_present_what_is_too_deep_to_see(
    road: Road, monkeypatch: pytest.MonkeyPatch, delivered: int
) -> None:
    monkeypatch.setattr(census, "_PAGE", 10)
    monkeypatch.setattr(census, "_MOST", 50)
    one, sent = road.instance(), parcels(95)
    await one.put(sent)
    await one.take(delivered, NOW)
    await one.prepare()
    assert await one.missing([*sent, *parcels(1)]) == []


async def test_it_sees_messages_that_move_on_while_it_looks(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "_PAGE", 7)
    one, sent = road.instance("one"), parcels(60)
    await one.prepare()
    await one.put(sent)

    async def look() -> None:
        for _ in range(30):
            assert await road.instance("watcher").missing(sent) == []

    async def move_about() -> None:
        while not looking.done():
            await one.hand_back(await one.take(9, NOW))

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        group.create_task(move_about())


async def test_it_tells_how_deep_each_lane_is(road: Road) -> None:
    one = road.instance()
    assert await one.depths() == dict.fromkeys(Lane, 0)
    await one.put([*parcels(3, Lane.HIGH), *parcels(2, Lane.LOW)])
    taken = await one.take(4, NOW)
    assert await one.depths() == {Lane.HIGH: 3, Lane.NORMAL: 0, Lane.LOW: 2}
    await one.ack(taken)
    assert await one.depths() == {Lane.HIGH: 0, Lane.NORMAL: 0, Lane.LOW: 1}


async def test_it_drops_consumers_that_are_gone_and_hold_nothing(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = road.instance("one")
    await one.put(parcels(3))
    for name in ("alive", "dead", "dead with work"):
        taken = await road.instance(name).take(1, NOW)
        if name != "dead with work":
            await one.ack(taken)
    await one.tidy({"alive"})  # nobody was silent for a minute yet
    assert await road.consumers() == {"alive", "dead", "dead with work"}
    monkeypatch.setattr(tidying, "_SILENT_MILLIS", -1)
    await one.put(parcels(1))
    await one.ack(await one.take(1, NOW))
    await one.tidy({"alive"})
    assert await road.consumers() == {"alive", "dead with work", "one"}
    assert len(await road.instance("dead with work").mine()) == 1


async def test_it_looks_again_before_it_drops_a_consumer(road: Road) -> None:
    """It may have taken something since; dropping it would drop that too."""
    one = road.instance("one")
    await one.put(parcels(1))
    await one.take(1, NOW)
    dropped = await road.link.script(
        tidying._DROP_CONSUMERS, [road.keys[Lane.NORMAL]], ["scheduler", "one", "nobody"]
    )
    assert dropped == 1
    assert len(await one.mine()) == 1


async def test_it_clears_what_is_done_with_up_to_the_oldest_open_message(road: Road) -> None:
    one, sent = road.instance(), parcels(6)
    await one.put(sent)
    taken = await one.take(4, NOW)
    done = [taken[0], taken[1], taken[3]]
    await road.link.call("XACK", road.keys[Lane.NORMAL], "scheduler", *[one.receipt for one in done])
    await one.tidy(())
    assert await road.length() == 4  # the two before the held one are gone, the one behind it is not
    await one.ack([taken[2]])
    await one.tidy(())
    assert await road.length() == 2
    assert await one.missing(sent[4:]) == []
    rest = await one.take(10, NOW)
    assert ids(rest) == ids(sent[4:])
    await road.link.call("XACK", road.keys[Lane.NORMAL], "scheduler", *[one.receipt for one in rest])
    await one.tidy(())
    assert await road.length() == 0
    await one.tidy(())
    again = parcels(1)
    await one.put(again)
    assert ids(await one.take(1, timedelta(seconds=1))) == ids(again)


async def test_it_finds_nothing_to_tidy_where_there_is_nothing(road: Road) -> None:
    one = road.instance()
    await one.tidy(())
    await one.put(parcels(1))  # a stream without a group
    await one.tidy(())
    assert await road.length() == 1
    await one.prepare()
    await one.tidy(())
    assert await road.length() == 1
