"""Circuit breakers in the store: counted, opened, probed and closed by many at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.domain.breaker import CLOSED, Breaker, BreakerPolicy, BreakerState, Heard, Probe, why_not
from noonday.domain.execution import ExecutionState, WaitReason
from noonday.domain.job import Job
from noonday.domain.outcome import Deferred
from noonday.store import breakers, executions, history
from noonday.store.breakers import BreakerRow, Change
from noonday.store.database import Database
from noonday.store.executions import Ending
from tests.factories import NOON, a_job
from tests.store.store_steps import MINUTE, SECOND, add, claim, end, ending, look, plan_run, settle, sql

POLICY = BreakerPolicy(threshold=3, open_for=MINUTE, probe_lease=timedelta(seconds=20))
DUE = NOON + POLICY.open_for
BAD = Heard(failures=1, error="refused")


def hear(db: Database, heard: Mapping[str, Heard], now: datetime = NOON) -> dict[str, Change]:
    return db.write_now(lambda conn: breakers.hear(conn, heard, POLICY, now))


def get(db: Database, domain: str = "a.test") -> BreakerRow:
    found = db.read_now(lambda conn: breakers.get(conn, domain))
    assert found is not None
    return found


def opened(db: Database, domain: str = "a.test", now: datetime = NOON) -> None:
    change = hear(db, {domain: Heard(failures=3, error="refused")}, now)[domain]
    assert change.tripped


def probe(db: Database, now: datetime = DUE) -> tuple[Breaker, bool, datetime | None]:
    return db.write_now(lambda conn: breakers.probe(conn, "a.test", POLICY, now))


def won(db: Database, now: datetime = DUE) -> datetime:
    breaker, allowed, _ = probe(db, now)
    assert allowed
    assert breaker.probe_until is not None
    return breaker.probe_until


def sent_back(domain: str = "a.test", until: datetime = DUE) -> Deferred:
    held = Breaker(state=BreakerState.OPEN, opened_at=NOON)
    return Deferred(domain=domain, until=until, detail=why_not(domain, held, until))


def parked(db: Database, domain: str = "a.test") -> Ending:
    """A run that was claimed and is about to be parked."""
    job = a_job()
    add(db, job)
    plan_run(db, job)
    (claimed,) = claim(db)
    return ending(claimed, sent_back(domain))


def test_it_counts_failures_of_all_and_opens_at_the_threshold(db: Database) -> None:
    for failures in (1, 2):
        change = hear(db, {"a.test": BAD})["a.test"]
        assert not change.moved
        assert get(db).breaker == Breaker(failures=failures)
    change = hear(db, {"a.test": BAD}, NOON + SECOND)["a.test"]
    assert change.moved
    assert change.tripped
    row = get(db)
    assert row.breaker == Breaker(state=BreakerState.OPEN, failures=3, opened_at=NOON + SECOND)
    assert (row.trips, row.last_error, row.updated_at) == (1, "refused", NOON + SECOND)


def test_a_success_needs_no_row_and_cleans_one_that_is_there(db: Database) -> None:
    assert hear(db, {"a.test": Heard(ok=True)}) == {}
    assert db.read_now(lambda conn: breakers.get(conn, "a.test")) is None
    hear(db, {"a.test": BAD})
    assert db.read_now(breakers.not_clean).keys() == {"a.test"}
    hear(db, {"a.test": Heard(ok=True)})
    assert get(db).breaker == CLOSED
    assert db.read_now(breakers.not_clean) == {}


def test_one_of_many_who_ask_gets_the_probe(db: Database) -> None:
    opened(db)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: probe(db)[1], range(4)))
    assert sorted(answers) == [False, False, False, True]
    assert probe(db)[2] == DUE + POLICY.probe_lease
    assert won(db, DUE + POLICY.probe_lease) == DUE + 2 * POLICY.probe_lease, "the first one fell silent"


def test_failures_of_many_threads_are_all_counted(db: Database) -> None:
    """First rows of one domain made by several at once, too."""
    many = BreakerPolicy(threshold=1000)

    def fail(n: int) -> None:
        heard = {"a.test": BAD, f"{n % 3}.test": BAD}
        db.write_now(lambda conn: breakers.hear(conn, heard, many, NOON))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(fail, range(60)))
    assert get(db).breaker.failures == 60
    assert [get(db, f"{n}.test").breaker.failures for n in range(3)] == [20] * 3


def test_nobody_closes_it_but_its_probe(db: Database) -> None:
    opened(db)
    until = won(db)
    assert hear(db, {"a.test": Heard(ok=True)}) == {}
    assert hear(db, {"a.test": Heard(probe=Probe(until=until - SECOND, ok=True))}) == {}
    change = hear(db, {"a.test": Heard(probe=Probe(until=until, ok=True))}, DUE + SECOND)["a.test"]
    assert change.after.breaker == CLOSED
    assert get(db).trips == 1


def test_a_failed_probe_keeps_it_open_and_is_no_new_trip(db: Database) -> None:
    opened(db)
    change = hear(db, {"a.test": Heard(probe=Probe(until=won(db), ok=False), error="503")}, DUE + SECOND)
    assert not change["a.test"].tripped
    row = get(db)
    assert (row.breaker.state, row.breaker.opened_at) == (BreakerState.OPEN, DUE + SECOND)
    assert (row.trips, row.last_error) == (1, "503")


def test_closing_wakes_those_who_wait_for_this_domain_alone(db: Database) -> None:
    for domain in ("a.test", "a.test:8080", "b.test"):
        opened(db, domain)
    mine, port, other = parked(db), parked(db, "a.test:8080"), parked(db, "b.test")
    settle(db, [mine, port, other])
    hear(db, {"a.test": Heard(probe=Probe(until=won(db), ok=True))}, DUE - SECOND)
    assert look(db, mine.execution_id).available_at == DUE - SECOND
    assert look(db, port.execution_id).available_at == DUE
    assert look(db, other.execution_id).available_at == DUE
    assert [one.execution.id for one in claim(db, DUE - SECOND)] == [mine.execution_id]


def test_who_is_parked_after_it_closed_goes_on_at_once(db: Database) -> None:
    """Decided while it was open, written after: nobody will come to wake it."""
    opened(db)
    late = parked(db)
    hear(db, {"a.test": Heard(probe=Probe(until=won(db), ok=True))}, DUE)
    (settlement,) = settle(db, [late], DUE + SECOND)
    assert settlement.execution.available_at == DUE + SECOND
    assert look(db, late.execution_id).state is ExecutionState.PENDING


def side_by_side(
    db: Database, first: Callable[[Connection], object], second: Callable[[], object]
) -> tuple[Any, Any]:
    """Two transactions: the first commits only when the second waits for it, or has ended."""
    with ThreadPoolExecutor(2) as threads:
        begun = Event()

        def hold(conn: Connection) -> object:
            answer = first(conn)
            begun.set()
            until = time.monotonic() + 10
            while not other.done() and not waits_for_a_lock(db) and time.monotonic() < until:
                time.sleep(0.01)
            return answer

        def follow() -> object:
            begun.wait(10)
            return second()

        other = threads.submit(follow)
        held = threads.submit(db.write_now, hold)
        return held.result(20), other.result(20)


def waits_for_a_lock(db: Database) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(db.read_now(lambda conn: conn.exec_driver_sql(query).first()))


def test_two_who_ask_for_the_probe_at_once_do_not_both_get_it(postgres_db: Database) -> None:
    db = postgres_db
    opened(db)
    first, second = side_by_side(
        db, lambda conn: breakers.probe(conn, "a.test", POLICY, DUE), lambda: probe(db)
    )
    assert (first[1], second[1]) == (True, False)


def test_who_is_being_parked_while_it_closes_is_woken(postgres_db: Database) -> None:
    db = postgres_db
    opened(db)
    one, until = parked(db), won(db)
    closing = {"a.test": Heard(probe=Probe(until=until, ok=True))}
    side_by_side(
        db,
        lambda conn: executions.settle(conn, [one], DUE - 2 * SECOND),
        lambda: hear(db, closing, DUE - SECOND),
    )
    assert look(db, one.execution_id).available_at == DUE - SECOND


def test_who_is_to_be_parked_while_it_closes_does_not_wait_for_that(postgres_db: Database) -> None:
    db = postgres_db
    opened(db)
    one, until = parked(db), won(db)
    closing = {"a.test": Heard(probe=Probe(until=until, ok=True))}
    side_by_side(
        db,
        lambda conn: breakers.hear(conn, closing, POLICY, DUE - 2 * SECOND),
        lambda: settle(db, [one], DUE - SECOND),
    )
    assert look(db, one.execution_id).available_at == DUE - SECOND


def test_a_run_that_is_parked_keeps_its_number_for_the_attempt_to_come(db: Database) -> None:
    opened(db)
    one = parked(db)
    settle(db, [one])
    run = look(db, one.execution_id)
    assert (run.attempt, run.failures, run.wait_reason) == (0, 0, WaitReason.BREAKER)
    assert (
        run.detail == "the circuit breaker of a.test is open; asked again at 12:01:00 UTC or when it closes"
    )
    assert sql(db, "SELECT * FROM attempts") == []
    (again,) = claim(db, DUE)
    assert again.execution.attempt == 1
    end(db, again, now=DUE)
    tried = db.read_now(lambda conn: history.attempts(conn, one.execution_id))
    assert [attempt.number for attempt in tried] == [1]


def test_a_cancel_that_comes_before_it_is_parked_wins(db: Database) -> None:
    opened(db)
    one = parked(db)
    sql(db, "UPDATE executions SET cancel_requested_at = '2027-01-01 12:00:00+00:00'")
    (settlement,) = settle(db, [one])
    assert settlement.execution.state is ExecutionState.CANCELLED


def test_reset_closes_it_and_wakes_who_waited(db: Database) -> None:
    opened(db)
    one = parked(db)
    settle(db, [one])
    change = db.write_now(lambda conn: breakers.reset(conn, "a.test", NOON + SECOND))
    assert change is not None
    assert (change.before.breaker.state, change.after.breaker) == (BreakerState.OPEN, CLOSED)
    assert look(db, one.execution_id).available_at == NOON + SECOND
    assert db.write_now(lambda conn: breakers.reset(conn, "unknown.test", NOON)) is None


def test_it_keeps_a_bounded_number_and_forgets_the_clean_first(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "MOST", 3)
    for domain in ("a.test", "b.test", "c.test"):
        hear(db, {domain: BAD})
    assert hear(db, {"d.test": BAD}) == {}, "there is no room: it is treated as closed"
    assert db.read_now(breakers.not_clean).keys() == {"a.test", "b.test", "c.test"}
    hear(db, {"b.test": Heard(ok=True)})
    assert hear(db, {"d.test": BAD}, NOON + timedelta(days=6)) == {}
    assert hear(db, {"d.test": BAD}, NOON + timedelta(days=8)).keys() == {"d.test"}
    assert db.read_now(lambda conn: breakers.get(conn, "b.test")) is None


@pytest.mark.parametrize(
    "change",
    ["state = 'ajar'", "opened_at = NULL", "state = 'half_open'", "state = 'closed', failures = 0"],
)
def test_a_row_that_somebody_broke_by_hand_holds_nobody_back(db: Database, change: str) -> None:
    opened(db)
    sql(db, f"UPDATE breakers SET {change}")
    assert get(db).breaker.state is BreakerState.CLOSED
    assert probe(db) == (get(db).breaker, True, None)


def test_the_list_shows_first_who_is_held_back(db: Database) -> None:
    hear(db, {"a.test": BAD, "c.test": BAD})
    opened(db, "b.test")
    page = db.read_now(lambda conn: breakers.page(conn, limit=2))
    assert ([row.domain for row in page.items], page.total) == (["b.test", "a.test"], 3)
    page = db.read_now(lambda conn: breakers.page(conn, BreakerState.CLOSED, limit=1, offset=1))
    assert ([row.domain for row in page.items], page.total) == (["c.test"], 2)


def test_it_counts_who_waits(db: Database) -> None:
    opened(db)
    settle(db, [parked(db)])
    job: Job = a_job()
    add(db, job)
    plan_run(db, job)
    assert db.read_now(breakers.parked) == 1
