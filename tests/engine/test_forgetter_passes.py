"""What the front door keeps for a while is forgotten in time, in batches, and not before."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, func, select

from noonday.control.sessions import Sessions
from noonday.domain.access import Caller, Role
from noonday.engine.forgetter import ForgetterConfig
from noonday.store import deliveries, events, replays
from noonday.store.deliveries import Delivery
from noonday.store.events import News
from noonday.store.front_tables import deliveries as deliveries_table
from noonday.store.front_tables import events as events_table
from noonday.store.front_tables import replays as replays_table
from noonday.store.front_tables import sessions as sessions_table
from noonday.store.replays import Claim
from noonday.testing import ManualInstance

DAY = timedelta(days=1)


async def left(scheduler: ManualInstance) -> tuple[int, ...]:
    tables = (replays_table, deliveries_table, events_table)

    def count(conn: Connection) -> tuple[int, ...]:
        return tuple(conn.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)

    return await scheduler.db.read(count)


async def test_it_forgets_in_batches_what_is_of_no_use_any_more(scheduler: ManualInstance) -> None:
    now = scheduler.clock.now()

    def fill(conn: Connection) -> None:
        for number in range(7):
            claim = Claim(f"key-{number}", now)
            replays.take(conn, claim, "print", now + number * DAY)
            deliveries.take(conn, Delivery(id=str(number), path="/x", received_at=now + number * DAY))
        events.append(conn, [News(at=now, kind="job.created") for _ in range(7)])

    await scheduler.db.write(fill)
    forgetter = scheduler.engine.forgetter
    forgetter._config = ForgetterConfig(keep_events=3, keep_deliveries=2 * DAY, batch=2)
    assert await forgetter.run_once() == timedelta(minutes=1)
    assert await left(scheduler) == (6, 7, 3)
    scheduler.clock.advance(days=4)
    await forgetter.run_once()
    assert await left(scheduler) == (2, 5, 3)


async def test_it_forgets_browsers_whose_session_ran_out(scheduler: ManualInstance) -> None:
    made = Sessions(scheduler.db, scheduler.clock)
    _, cookie = await made.begin(Caller(name="ada", role=Role.VIEWER))
    count = select(func.count()).select_from(sessions_table)
    for hours, kept in ((11, 1), (1, 0)):
        scheduler.clock.advance(hours=hours)
        await scheduler.engine.forgetter.run_once()
        assert await scheduler.db.read(lambda conn: conn.execute(count).scalar_one()) == kept
    assert await made.find(cookie) is None


async def test_it_keeps_as_many_events_as_the_engine_was_told(scheduler: ManualInstance) -> None:
    assert scheduler.engine.forgetter._config.keep_events == scheduler.engine.config.keep_events
    assert scheduler.engine.forgetter in scheduler.engine.actors
    assert scheduler.engine.forgetter.gate is scheduler.engine.elector  # one of many instances is enough
