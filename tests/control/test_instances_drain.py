"""Who is there, who leads, who is busy; drain and resume of one instance and of all."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import Connection, update

from noonday.control.instances import Instances, Workers, at_rest
from noonday.domain.errors import Conflict, NotFound
from noonday.domain.job import Lane
from noonday.domain.schedule import Manual
from noonday.store import instances, tables
from noonday.store.database import Database
from noonday.store.instances import DRAINED, DRAINING, RUNNING
from noonday.store.notices import INSTANCES
from tests.control.desk import Desk
from tests.control.peers import KEY, an_instance, elect, enter
from tests.factories import NOON


@pytest.fixture
def crew(desk: Desk) -> Instances:
    return Instances(desk.db, desk.clock, KEY)


async def wanted(db: Database, name: str) -> str:
    return await db.read(lambda conn: instances.wanted(conn, name))


async def test_it_lists_everybody_and_marks_the_leader(desk: Desk, crew: Instances) -> None:
    silent = an_instance("gone", heartbeat_at=NOON - timedelta(minutes=2))
    await enter(desk.db, an_instance("one"), an_instance("two", "worker", road="streams"), silent)
    assert await elect(desk.db, "one") == 1
    roster = await crew.roster()
    assert roster.leader is not None
    assert (roster.leader.holder, roster.leader.term) == ("one", 1)
    assert {peer.instance.id: (peer.state, peer.leads, peer.alive) for peer in roster.peers} == {
        "one": (RUNNING, True, True),
        "two": (RUNNING, False, True),
        "gone": ("silent", False, False),
    }


async def test_nobody_leads_once_the_lease_is_over(desk: Desk, crew: Instances) -> None:
    await enter(desk.db, an_instance("one"))
    await elect(desk.db, "one")
    over = update(tables.leadership).values(expires_at=NOON - timedelta(days=3650))
    await desk.db.write(lambda conn: conn.execute(over))
    roster = await crew.roster()
    assert roster.leader is None
    assert not roster.peers[0].leads


async def test_it_counts_every_slot_once(desk: Desk, crew: Instances) -> None:
    """Over all living workers; the busy ones are those that run now, whatever the last beat said."""
    await enter(
        desk.db,
        an_instance("worker-1", busy=9),
        an_instance("two", "worker", state=DRAINING, slots=4),
        an_instance("planner", "scheduler"),
        an_instance("gone", "worker", heartbeat_at=NOON - timedelta(minutes=2)),
    )
    for lane in (Lane.HIGH, Lane.LOW):
        job = await desk.new(schedule=Manual(), lane=lane)
        await desk.jobs.force_run(job.id)
    waiting = await crew.workers()
    assert (waiting.active, sum(waiting.queue.values())) == (0, 2)
    await desk.claim()  # as worker-1
    found = await crew.workers()
    assert [peer.instance.id for peer in found.peers] == ["two", "worker-1"]
    assert (found.total, found.active, found.idle, found.draining) == (14, 2, 8, 4)
    assert sum(found.queue.values()) == 0


def test_no_worker_is_no_slot() -> None:
    assert Workers(peers=(), queue={}).total == 0


async def test_it_drains_and_resumes_one(desk: Desk, crew: Instances) -> None:
    await enter(desk.db, an_instance("one"), an_instance("two"))
    told = desk.db.subscribe(INSTANCES)
    (peer,) = await crew.drain("two", "alice")
    assert (peer.instance.id, peer.state) == ("two", DRAINING)
    async with asyncio.timeout(5):
        await told.wait()
    assert (await wanted(desk.db, "one"), await wanted(desk.db, "two")) == (RUNNING, DRAINING)
    assert not at_rest((await crew.roster()).peers[1:])
    desk.advance(seconds=1)
    await crew.resume("two", "bob")
    assert await wanted(desk.db, "two") == RUNNING
    entries = [(one.actor, one.action, one.kind, one.before, one.after) for one in await desk.audit("two")]
    assert entries == [
        ("alice", "drain", "instance", {"wanted": RUNNING}, {"wanted": DRAINING}),
        ("bob", "resume", "instance", {"wanted": DRAINING}, {"wanted": RUNNING}),
    ]


async def test_all_means_every_worker_and_silent_ones_too_for_they_may_wake_up(
    desk: Desk, crew: Instances
) -> None:
    silent = an_instance("gone", heartbeat_at=NOON - timedelta(minutes=2))
    await enter(desk.db, an_instance("one"), an_instance("two", "worker"), an_instance("api", "api"), silent)
    assert {peer.instance.id for peer in await crew.drain()} == {"one", "two", "gone"}
    found = {name: await wanted(desk.db, name) for name in ("one", "two", "api", "gone")}
    assert found == {"one": DRAINING, "two": DRAINING, "api": RUNNING, "gone": DRAINING}
    assert len(await crew.resume()) == 3


async def test_it_refuses_an_unknown_one_and_one_without_a_worker(desk: Desk, crew: Instances) -> None:
    await enter(desk.db, an_instance("api", "api"))
    with pytest.raises(NotFound, match="there is no instance 'two'"):
        await crew.drain("two")
    with pytest.raises(Conflict, match="has no worker"):
        await crew.drain("api")
    assert await crew.drain() == ()
    assert await desk.audit("api") == []


async def test_a_beat_leaves_alone_what_people_want_and_a_new_start_forgets_it(desk: Desk) -> None:
    await enter(desk.db, an_instance("one"))
    await Instances(desk.db, desk.clock, KEY).drain("one")

    def beat(conn: Connection) -> None:
        instances.beat(conn, an_instance("one", state=DRAINED))

    await desk.db.write(beat)
    assert await wanted(desk.db, "one") == DRAINING
    await enter(desk.db, an_instance("one"))
    assert await wanted(desk.db, "one") == RUNNING


async def test_what_rests_or_is_gone_needs_no_waiting(desk: Desk, crew: Instances) -> None:
    silent = an_instance("gone", heartbeat_at=NOON - timedelta(minutes=2))
    await enter(desk.db, an_instance("one", state=DRAINED), silent)
    assert at_rest((await crew.roster()).peers)
    assert at_rest(())
