"""One pass of the triggers at a time: slots, the fence, and a database that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import cast

import pytest

from noonday.domain.errors import NotLeader, Unavailable
from noonday.domain.job import Job, Trigger
from noonday.domain.schedule import Event
from noonday.engine.triggers import Triggers
from noonday.ports import Message, Silence
from noonday.store import channels
from noonday.store.database import CommitUnknown, Database
from noonday.testing import ManualInstance


class Script:
    """A receiver that says what a test wants, and knows whether anybody listens."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.followed: set[str] = set()

    async def follow(self, channels: Collection[str]) -> None:
        self.followed = set(channels)

    async def take(self, limit: int, wait: timedelta) -> list[Message]:
        taken, self.messages = self.messages[:limit], self.messages[limit:]
        return taken

    async def close(self) -> None:
        self.followed = set()


@dataclass
class Fired(Silence):
    told: list[tuple[str, int]] = field(default_factory=list)

    def triggered(self, kind: str, matched: int) -> None:
        self.told.append((kind, matched))


@dataclass
class Reign:
    """An elector in the hands of a test."""

    leading: bool = True
    over: bool = False  # the store knows of another leader

    def fence(self, conn: object) -> None:
        if self.over:
            self.leading = False
            raise NotLeader

    async def wait(self) -> None:
        raise asyncio.CancelledError


def listening(scheduler: ManualInstance, receiver: Script, reign: Reign, fired: Fired) -> Triggers:
    return Triggers(
        db=scheduler.db,
        clock=scheduler.clock,
        receiver=receiver,
        telemetry=fired,
        elector=reign,  # type: ignore[arg-type]
    )


def said(count: int = 1) -> list[Message]:
    return [Message("a", f'{{"n": {n}}}', "a") for n in range(count)]


async def event_job(scheduler: ManualInstance, name: str = "job") -> Job:
    return await scheduler.add(name, Event(), "noop", trigger=Trigger(channel="a"))


async def test_two_messages_within_one_moment_are_two_executions(scheduler: ManualInstance) -> None:
    """The clock stands still: their slots differ all the same, also across passes."""
    await event_job(scheduler)
    receiver, fired = Script(*said(2)), Fired()
    triggers = listening(scheduler, receiver, Reign(), fired)
    await triggers.run_once()
    receiver.messages = said(2)
    await triggers.run_once()
    runs = await scheduler.history("job")
    assert len({run.scheduled_for for run in runs}) == len(runs) == 4
    assert fired.told == [("pubsub", 1)] * 4


async def test_one_that_leads_no_more_starts_nothing_and_hangs_up(scheduler: ManualInstance) -> None:
    await event_job(scheduler)
    receiver, reign, fired = Script(*said()), Reign(over=True), Fired()
    triggers = listening(scheduler, receiver, reign, fired)
    with pytest.raises(NotLeader):
        await triggers.run_once()
    assert receiver.followed == set()
    assert await scheduler.history("job") == []
    assert fired.told == []

    reign.over, reign.leading = False, False
    receiver.followed = {"a"}
    with pytest.raises(asyncio.CancelledError):  # it waits to be elected
        await triggers.run_once()
    assert receiver.followed == set()


async def test_changes_that_are_told_close_together_are_looked_at_once(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(conn: object) -> dict[str, int]:
        nonlocal looks
        looks += 1
        return {}

    monkeypatch.setattr(channels, "wanted", counted)
    triggers = listening(scheduler, Script(), Reign(), Fired())
    await triggers.run_once()
    for number in range(5):
        await event_job(scheduler, f"job-{number}")
        await triggers.wake.wait()  # until the commit was heard of
        triggers.wake.clear()
        wish = await triggers.run_once()
        assert timedelta() <= cast(timedelta, wish) <= timedelta(seconds=0.1)
    assert looks == 1
    scheduler.clock.advance(seconds=0.1)
    assert await triggers.run_once() == timedelta(minutes=1)
    assert looks == 2


async def test_messages_wait_here_while_the_database_is_away(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await event_job(scheduler)
    receiver = Script(*said(3))
    triggers = listening(scheduler, receiver, Reign(), Fired())

    async def down(_: object, **how: bool) -> None:
        raise Unavailable("the database is not available")

    with monkeypatch.context() as outage:
        outage.setattr(scheduler.db, "write", down)
        with pytest.raises(Unavailable):
            await triggers.run_once()
    await triggers.run_once()
    assert [run.config for run in await scheduler.history("job")] == [{"n": n} for n in range(3)]


async def test_an_unknown_commit_starts_nothing_twice(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await event_job(scheduler)
    triggers = listening(scheduler, Script(*said()), Reign(), Fired())

    async def lost(db: Database, work: Callable[..., object], **how: bool) -> object:
        await Database.write(db, work, **how)
        raise CommitUnknown

    with monkeypatch.context() as outage:
        outage.setattr(scheduler.db, "write", partial(lost, scheduler.db))
        await triggers.run_once()
    await triggers.run_once()
    assert len(await scheduler.history("job")) == 1


async def test_many_jobs_on_one_channel_are_started_in_bites(scheduler: ManualInstance) -> None:
    for n in range(30):
        await event_job(scheduler, f"job-{n}")
    fired = Fired()
    triggers = listening(scheduler, Script(*said(100)), Reign(), fired)
    await triggers.run_once()
    assert fired.told == [("pubsub", 30)] * 100
    assert len(await scheduler.history("job-29")) == 100
