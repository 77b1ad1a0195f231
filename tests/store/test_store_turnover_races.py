"""Ends and claims at once, while others hold something, the session is lost, or many do the same."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, text

from noonday.domain.execution import Cause, ExecutionState
from noonday.domain.schedule import Manual
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import FrontAhead
from tests.factories import NOON, a_job, an_execution
from tests.store.feeding_steps import ALLOW, held
from tests.store.store_steps import add, job_now, look, plan, runs_of, sql
from tests.store.turnover_steps import AHEAD, Way, an_order, of_one_job, told

HOUR = timedelta(hours=1)


def backend_of(conn: Connection) -> int:
    driver: Any = conn.connection.driver_connection
    pid: int = driver.info.backend_pid
    return pid


class TestOnTheServer:
    def test_claims_are_worked_out_while_the_ends_wait(self, postgres_db: Database) -> None:
        """Somebody has a run in his hands, so that its end is not written before he lets go of it."""
        db, world = postgres_db, of_one_job()
        claims = world.claimed(db)
        worked = threading.Event()

        class Watched(FrontAhead):
            def work(self) -> None:
                super().work()
                assert self._batch is not None
                assert len(self._batch.claims) == 3
                worked.set()

        def hold(conn: Connection) -> None:
            run = claims[1].execution.id
            conn.execute(text("SELECT 1 FROM executions WHERE id = :id FOR UPDATE"), {"id": run})

        turned: list[int] = []
        way = Way(ahead=True, make=Watched)
        with held(db, hold):
            turning = threading.Thread(
                target=lambda: turned.append(len(way.turn(db, [told(one) for one in claims]).claims))
            )
            turning.start()
            assert worked.wait(20), "nothing was worked out before the ends were written"
            assert not turned
        turning.join(20)
        assert turned == [3]

    def test_what_somebody_else_is_claiming_is_passed_by(self, postgres_db: Database) -> None:
        db, world = postgres_db, of_one_job()
        claims = world.claimed(db)
        theirs = next(run for run in world.runs if look(db, run).state is ExecutionState.QUEUED)

        def hold(conn: Connection) -> None:
            conn.execute(text("SELECT 1 FROM executions WHERE id = :id FOR UPDATE"), {"id": theirs.id})

        with held(db, hold):
            turned = AHEAD.turn(db, [told(one) for one in claims])
        assert turned.ahead
        assert theirs.id not in {one.execution.id for one in turned.claims}
        assert len(turned.claims) == 2

    def test_a_session_that_is_lost_beside_the_ends_is_begun_anew(self, postgres_db: Database) -> None:
        db, world = postgres_db, of_one_job()
        claims = world.claimed(db)
        tries: list[FrontAhead] = []

        class Cut(FrontAhead):
            def work(self) -> None:
                super().work()
                tries.append(self)
                if len(tries) == 1:
                    pid = backend_of(self._conn)
                    other.read_now(
                        lambda conn: conn.execute(text("SELECT pg_terminate_backend(:p, 20000)"), {"p": pid})
                    )

        other = Database(db.url.render_as_string(hide_password=False))
        turned = Way(ahead=True, make=Cut).turn(db, [told(one) for one in claims])
        other.close_now()
        assert len(tries) == 2
        assert (len(turned.ends.settled), len(turned.claims), turned.ahead) == (3, 3, True)
        assert len({one.execution.id for one in turned.claims}) == 3
        assert job_now(db, world.jobs[0]).state.value == "running"


def test_many_who_claim_and_tell_at_once_run_each_of_them_once(db: Database, db_url: str) -> None:
    """Of the same few jobs, and of one on which another depends: nobody waits for ever, nothing is left."""
    made = [a_job(overlapping=ALLOW) for _ in range(3)]
    child = a_job(schedule=Manual(), overlapping=ALLOW, depends_on=(made[0].id,))
    add(db, *made, child)
    waiting = an_execution(job=child, scheduled_for=NOON - HOUR, cause=Cause.TRIGGER)
    runs = [run for job in made for run in runs_of(job, 200)]
    plan(db, *runs, waiting)
    other = Database(db_url)
    got: list[str] = []
    beside = 0

    def drain(mine: Database) -> None:
        nonlocal beside
        claims: list[Claim] = []
        for _ in range(1000):
            turned = AHEAD.turn(mine, [told(one) for one in claims], an_order(20))
            left = [one for one in claims if one.execution.id in turned.ends.left]
            got.extend(one.execution.id for one in turned.claims)
            beside += turned.ahead
            claims = [*left, *turned.claims]
            if not claims and mine.read_now(executions.next_available_at) is None:
                return
        raise AssertionError("it never ends")

    threads = [threading.Thread(target=drain, args=(mine,)) for mine in (db, db, other, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    other.close_now()
    assert max(Counter(got).values()) == 1
    assert len(got) == len(runs) + 1
    assert beside > 0
    assert sql(db, "SELECT DISTINCT state FROM executions") == [{"state": "completed"}]
