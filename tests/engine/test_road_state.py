"""Is the road open? It falls at the first sign, says so once, is asked for with back-off, and comes back."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from noonday.domain.errors import RoadDown
from noonday.domain.execution import Road
from noonday.engine import streams as module
from noonday.engine.streams import Streams
from noonday.testing import FlakyQueue, FlakyRoad, ManualClock

BOTH = (Road.DATABASE, Road.STREAMS)


def a_road() -> tuple[FlakyRoad, Streams, ManualClock]:
    clock = ManualClock()
    road = FlakyRoad(clock)
    return road, Streams(queue=road.queue("one"), clock=clock), clock


async def fall(streams: Streams) -> None:
    with pytest.raises(RoadDown):
        await streams.ask(lambda queue: queue.depths())


async def test_without_a_queue_everything_takes_the_database_road() -> None:
    streams = Streams(queue=None, clock=ManualClock())
    assert (streams.up, streams.roads, streams.forgotten) == (False, BOTH, 0)
    await fall(streams)


async def test_the_first_failure_closes_it_and_whoever_watches_is_told() -> None:
    road, streams, _ = a_road()
    wake = asyncio.Event()
    streams.watch(wake)
    assert (streams.up, streams.roads) == (True, (Road.DATABASE,))
    road.down()
    await fall(streams)
    assert (streams.up, streams.roads) == (False, BOTH)
    assert wake.is_set()
    assert streams.wake.is_set()


async def test_it_is_said_once_that_it_is_down_and_once_that_it_is_back() -> None:
    road, streams, clock = a_road()
    with capture_logs() as logs:
        road.down()
        for _ in range(50):
            await fall(streams)
            await streams.run_once()
            clock.advance(seconds=1)
        road.up()
        clock.advance(seconds=3)
        await streams.run_once()
        await streams.ask(lambda queue: queue.depths())
    assert [line["action"] for line in logs] == ["streams.down", "streams.back"]
    assert "cut for one" in logs[0]["error"]


async def test_it_is_asked_for_with_growing_pauses_and_not_in_between() -> None:
    road, streams, clock = a_road()
    road.down()
    await fall(streams)
    pauses = []
    for _ in range(8):
        wish = await streams.run_once()
        assert isinstance(wish, timedelta)
        pauses.append(round(wish.total_seconds(), 1))
        clock.advance(seconds=wish.total_seconds())
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
    road.up()
    clock.advance(seconds=-0.0)
    assert await streams.run_once() == timedelta(seconds=30)
    assert streams.up
    assert streams.epoch == 2


async def test_a_road_that_does_not_stay_is_asked_less_and_less() -> None:
    """Reads are answered and writes are refused: no flood of lines, whatever it is."""
    road, streams, clock = a_road()
    pauses = []
    for _ in range(7):
        road.down()
        await fall(streams)
        road.up()
        wish = await streams.run_once()
        assert isinstance(wish, timedelta)
        pauses.append(round(wish.total_seconds(), 1))
        clock.advance(seconds=wish.total_seconds())
        assert await streams.run_once() == timedelta(seconds=30)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    clock.advance(seconds=60)
    road.down()
    await fall(streams)
    assert await streams.run_once() == timedelta(seconds=0.1)


async def test_a_road_that_hangs_is_a_road_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    _, streams, _ = a_road()

    async def for_ever(queue: object) -> None:
        await asyncio.Event().wait()

    with pytest.raises(RoadDown, match="does not answer"):
        await streams.ask(for_ever)
    assert not streams.up


async def test_whatever_goes_wrong_on_it_the_other_road_goes_on() -> None:
    _, streams, _ = a_road()

    async def mad(queue: object) -> None:
        raise KeyError("a bug")

    with pytest.raises(RoadDown, match="a bug"):
        await streams.ask(mad)
    assert streams.roads == BOTH


async def test_a_failure_from_before_it_came_back_does_not_close_it_again() -> None:
    road, streams, clock = a_road()
    failing, fail = asyncio.Event(), asyncio.Event()

    async def late(queue: object) -> None:
        failing.set()
        await fail.wait()
        raise RoadDown("of an old connection")

    old = asyncio.create_task(streams.ask(late))
    await failing.wait()
    road.down()
    await fall(streams)
    road.up()
    clock.advance(seconds=1)
    await streams.run_once()
    fail.set()
    with pytest.raises(RoadDown):
        await old
    assert streams.up


class Doubtful(FlakyQueue):
    """A road that works and has a flaw."""

    async def check(self) -> list[str]:
        await super().check()
        return ["it may forget"]


async def test_what_is_doubtful_about_it_is_said_at_the_start_and_not_again_when_it_comes_back() -> None:
    clock = ManualClock()
    road = FlakyRoad(clock)
    streams = Streams(queue=Doubtful(road, "one"), clock=clock)
    with capture_logs() as logs:
        await streams.run_once()
        road.down()
        await fall(streams)
        road.up()
        clock.advance(seconds=3)
        await streams.run_once()
        await streams.run_once()
    assert [line["action"] for line in logs] == ["streams.doubt", "streams.down", "streams.back"]
    assert logs[0]["event"] == "it may forget"


async def test_a_road_that_nobody_uses_here_is_looked_at_all_the_same() -> None:
    """As on an instance with the API alone, whose health says which road is taken."""
    road, streams, _ = a_road()
    await streams.run_once()
    road.down()
    with capture_logs():
        await streams.run_once()
    assert not streams.up
