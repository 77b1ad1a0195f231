"""Ears on Redis channels: exact names, patterns, changes while it listens, and a server that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noonday.domain.errors import RoadDown
from noonday.ports import Message
from noonday.queue import ear
from noonday.queue.pubsub import RedisReceiver
from noonday.redis_link import RedisLink
from tests.factories import NOON
from tests.queue.roads import opened
from tests.servers import Server

WAIT = timedelta(seconds=5)
AT_ONCE = timedelta()


@pytest.fixture
async def link(server_url: str) -> AsyncIterator[RedisLink]:
    async with opened(server_url) as made:
        yield made


@pytest.fixture
async def receiver(link: RedisLink) -> AsyncIterator[RedisReceiver]:
    made = RedisReceiver(link)
    yield made
    await made.close()


@pytest.fixture
def prefix(link: RedisLink) -> str:
    return f"test-{id(link)}-{NOON:%H%M}"


async def publish(link: RedisLink, channel: str, *texts: str) -> None:
    for text in texts:
        await link.call("PUBLISH", channel, text)


async def hear(receiver: RedisReceiver, count: int) -> list[Message]:
    """So many messages, however they are cut into batches."""
    found: list[Message] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += await receiver.take(100, WAIT)
    return found


async def keep_listening(receiver: RedisReceiver) -> None:
    async with asyncio.timeout(10):
        while True:
            await receiver.take(1, timedelta(milliseconds=100))


async def test_it_hears_what_is_published_from_the_moment_on_at_which_it_follows(
    link: RedisLink, receiver: RedisReceiver, prefix: str
) -> None:
    await publish(link, f"{prefix}:a", "too early")
    await receiver.follow([f"{prefix}:a"])
    await publish(link, f"{prefix}:a", "one", "two")
    await publish(link, f"{prefix}:b", "not followed")
    heard = await hear(receiver, 2)
    assert heard == [Message(f"{prefix}:a", text, f"{prefix}:a") for text in ("one", "two")]
    assert await receiver.take(10, AT_ONCE) == []


async def test_it_names_the_subscription_under_which_it_heard(
    link: RedisLink, receiver: RedisReceiver, prefix: str
) -> None:
    """One message for each subscription that covers the channel, so that each job is started once."""
    exact, star, mark, other = f"{prefix}:new", f"{prefix}:*", f"{prefix}:n?w", f"{prefix}:[x-z]*"
    await receiver.follow([exact, star, mark, other])
    await publish(link, exact, "it")
    heard = await hear(receiver, 3)
    assert {message.heard_as for message in heard} == {exact, star, mark}
    assert {(message.channel, message.data) for message in heard} == {(exact, "it")}
    assert await receiver.take(10, AT_ONCE) == []


async def test_a_change_misses_nothing_of_what_stays(
    link: RedisLink, receiver: RedisReceiver, prefix: str
) -> None:
    stays, goes, comes = (f"{prefix}:{name}" for name in ("stays", "goes", "comes"))
    await receiver.follow([stays, goes])
    await publish(link, stays, "before")
    await publish(link, goes, "before")
    await receiver.follow([stays, comes, f"{prefix}:*x"])
    await publish(link, stays, "after")
    await publish(link, goes, "after")
    await publish(link, comes, "after")
    heard = await hear(receiver, 4)
    assert [(m.channel.rpartition(":")[2], m.data) for m in heard] == [
        ("stays", "before"),
        ("goes", "before"),
        ("stays", "after"),
        ("comes", "after"),
    ]


async def test_many_channels_and_a_burst(link: RedisLink, receiver: RedisReceiver, prefix: str) -> None:
    names = [f"{prefix}:{n}" for n in range(1200)]
    await receiver.follow(names)
    await link.pipeline([("PUBLISH", name, str(n)) for n, name in enumerate(names)])
    heard = await hear(receiver, len(names))
    assert sorted(int(message.data) for message in heard) == list(range(1200))
    await receiver.follow(names[:1])
    await publish(link, names[1], "gone")
    await publish(link, names[0], "still")
    assert [message.data for message in await hear(receiver, 1)] == ["still"]


async def test_it_takes_no_more_than_it_was_asked_for(
    link: RedisLink, receiver: RedisReceiver, prefix: str
) -> None:
    await receiver.follow([prefix])
    await publish(link, prefix, *"abcde")
    async with asyncio.timeout(10):
        first = await receiver.take(2, WAIT)
        while len(first) < 2:
            first += await receiver.take(2 - len(first), WAIT)
    assert [message.data for message in first] == ["a", "b"]
    assert [message.data for message in await hear(receiver, 3)] == ["c", "d", "e"]


async def test_it_hears_bytes_that_are_no_text(link: RedisLink, receiver: RedisReceiver, prefix: str) -> None:
    await receiver.follow([prefix])
    await link.call("PUBLISH", prefix, b"\xff\xfe\x00ok")
    [message] = await hear(receiver, 1)
    assert message.data.endswith("ok")


async def test_following_nothing_needs_no_connection(link: RedisLink, receiver: RedisReceiver) -> None:
    await receiver.follow([])
    with pytest.raises(RoadDown):
        await receiver.take(1, AT_ONCE)


async def test_a_server_that_goes_away_is_noticed_and_followed_again(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        receiver = RedisReceiver(link)
        await receiver.follow(["a"])
        own_server.halt()
        with pytest.raises(RoadDown):
            await keep_listening(receiver)
        with pytest.raises(RoadDown):
            await receiver.follow(["a"])
        own_server.start()
        await receiver.follow(["a"])
        await publish(link, "a", "back")
        assert [message.data for message in await hear(receiver, 1)] == ["back"]
        await receiver.close()


async def test_a_line_that_died_silently_is_noticed(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ear, "_QUIET", 0.2)
    monkeypatch.setattr(ear, "PATIENCE", 0.5)
    async with opened(own_server.url) as link:
        receiver = RedisReceiver(link)
        await receiver.follow(["a"])
        for _ in range(10):  # quiet, but alive: it asks, and is answered
            await receiver.take(1, timedelta(milliseconds=100))
        own_server.pause()
        try:
            with pytest.raises(RoadDown):
                await keep_listening(receiver)
        finally:
            own_server.unpause()
        await receiver.close()
