"""What was due and what became of it: the same numbers from tallies as from the executions themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, delete, event, func, select, update

from noonday.domain.execution import Cause, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job
from noonday.domain.load import first_minute
from noonday.domain.target import ServiceTarget
from noonday.ids import new_id
from noonday.store import history, jobs, tallies, tallying
from noonday.store.database import Database
from noonday.store.execution_rows import planned_values
from noonday.store.front_tables import stragglers
from noonday.store.front_tables import tallies as table
from noonday.store.releasing import revive
from noonday.store.tables import executions
from noonday.store.tables import jobs as jobs_table
from noonday.store.tallies import SLOT, Counted, Width
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import analyse, as_new

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
AGO = NOON - 12 * HOUR
LATER = NOON + 12 * HOUR
S = ExecutionState


def a_row(job: Job, due: datetime, state: ExecutionState, made: datetime | None = None, **values: Any) -> Any:
    run = an_execution(job=job, scheduled_for=due, id=ExecutionId(new_id(made or due)), state=state)
    return planned_values(run) | {"started_at": None, "completed_at": None} | values


def ended(job: Job, due: datetime, state: ExecutionState = S.COMPLETED, took: int = 60, **values: Any) -> Any:
    return a_row(job, due, state, **{"started_at": due, "completed_at": due + took * SECOND} | values)


def held_back(job: Job, due: datetime) -> Any:
    """Skipped, because what it depends on had failed."""
    reason = SkipReason.DEPENDENCY.value
    return a_row(job, due, S.SKIPPED, skip_reason=reason, skipped_count=1, completed_at=due)


@dataclass
class Past:
    """A database with a past, and the plain truth about it."""

    db: Database
    ours: Job
    theirs: Job

    def write(self, *rows: dict[str, Any]) -> list[str]:
        def insert(conn: Connection) -> None:
            for row in rows:
                conn.execute(executions.insert().values(row))

        self.db.write_now(insert)
        return [row["id"] for row in rows]

    def change(self, *ids: str, **values: Any) -> None:
        self.db.write_now(
            lambda conn: conn.execute(update(executions).where(executions.c.id.in_(ids)).values(values))
        )

    def tally(self, now: datetime = NOON, limit: int = 1000, steps: int = 1000) -> None:
        """As the leader does it, for so many steps."""
        for act in (tallying.advance, tallying.fold):
            for _ in range(steps):
                if not self.db.write_now(partial(act, now=now, limit=limit)):
                    break

    def seen(self, service: str | None = None, width: Width = Width.SLOT) -> dict[datetime, Counted]:
        return self.db.read_now(lambda conn: tallies.counted(conn, AGO, LATER, width, service))

    def truth(self, service: str | None = None, width: timedelta = SLOT) -> dict[datetime, Counted]:
        """Row by row, without any of the code that is tested."""
        rows = self.db.read_now(lambda conn: conn.execute(select(executions)).mappings().all())
        there = self.db.read_now(lambda conn: set(conn.execute(select(jobs_table.c.id)).scalars()))
        found: dict[datetime, Counted] = defaultdict(Counted)
        for row in rows:
            due = row["scheduled_for"]
            mine = service is None or (row["job_id"] == self.theirs.id and row["job_id"] in there)
            if not mine or not AGO <= due < LATER:
                continue
            one, state = found[first_minute(due, width)], S(row["state"])
            many = max(row["skipped_count"], 1) if state is S.SKIPPED else 1
            one.states[state] = one.states.get(state, 0) + many
            if row["started_at"] and row["completed_at"] and state is not S.SKIPPED:
                one.busy += max(row["completed_at"] - row["started_at"], timedelta())
        return dict(found)

    def check(self) -> None:
        """By slot and by hour, of everybody and of a service."""
        for service in (None, "mail"):
            assert self.seen(service) == self.truth(service)
            assert self.seen(service, Width.HOUR) == self.truth(service, HOUR)

    def count(self, what: Any) -> int:
        found: int = self.db.read_now(
            lambda conn: conn.execute(select(func.count()).select_from(what)).scalar_one()
        )
        return found


@pytest.fixture
def past(db: Database) -> Past:
    def make(conn: Connection) -> tuple[Job, Job]:
        target = ServiceTarget(service="mail", endpoint="/x")
        return jobs.add(conn, a_job()), jobs.add(conn, a_job(target=target, next_run_at=LATER))

    return Past(db, *db.write_now(make))


def history_of(past: Past, chance: Random) -> Iterator[dict[str, Any]]:
    """Eleven hours of everything that happens, also what is made early or late."""
    for number in range(300):
        job = chance.choice([past.ours, past.theirs])
        due = NOON - 11 * HOUR + number * timedelta(seconds=131)
        made = due + chance.choice([-2 * SECOND, timedelta(), HOUR, 5 * MINUTE])
        match chance.choice(["ended"] * 6 + ["open", "skipped"]):
            case "ended":
                state = chance.choice([S.COMPLETED, S.COMPLETED, S.FAILED, S.CANCELLED])
                yield ended(job, due, state, chance.randrange(-2, 900), made=made)
            case "open":
                yield a_row(job, due, chance.choice([S.PENDING, S.QUEUED, S.RUNNING]), made=made)
            case _:
                yield a_row(
                    job, due, S.SKIPPED, made=made, skipped_count=chance.randrange(0, 5), completed_at=due
                )
    ahead = {"skipped_count": 3, "through_at": NOON + 2 * HOUR, "completed_at": NOON - HOUR}
    yield a_row(past.ours, NOON - 30 * MINUTE, S.SKIPPED, made=NOON - 40 * MINUTE, **ahead)
    yield a_row(past.ours, NOON + HOUR, S.SKIPPED, made=NOON - 20 * MINUTE, skipped_count=1)


@pytest.mark.parametrize("seed", range(2))
def test_numbers_equal_those_of_the_executions_at_each_step(past: Past, seed: int) -> None:
    chance = Random(seed)
    rows = list(history_of(past, chance))
    past.write(*rows)
    past.check()  # nothing is tallied yet
    for _ in range(4):
        past.tally(limit=60, steps=1)  # a part is
        past.check()
    past.tally()
    past.check()
    assert past.count(stragglers) > 20
    open_ones = [row["id"] for row in rows if S(row["state"]).open]
    past.change(*open_ones[::2], state="failed", started_at=NOON - HOUR, completed_at=NOON)
    past.check()  # late ends, before and after they are tallied
    past.tally(NOON + 20 * MINUTE, limit=7)
    past.check()
    past.write(*(ended(past.theirs, NOON + n * MINUTE, S.FAILED) for n in range(16, 30)))
    past.check()
    past.tally(NOON + 3 * HOUR)
    past.check()
    assert past.count(stragglers) == len(open_ones) - len(open_ones[::2])


def test_what_is_tallied_is_not_read_again(past: Past) -> None:
    past.write(*(ended(past.ours, NOON - n * MINUTE) for n in range(20, 600)))
    past.tally()
    truth = past.truth()
    past.db.write_now(lambda conn: conn.execute(delete(executions)))  # behind everybody's back
    assert past.seen() == truth
    past.db.write_now(tallying.restart)
    assert past.seen() == {}


def test_tallying_again_changes_nothing(past: Past) -> None:
    past.write(*history_of(past, Random(9)))
    past.tally()
    before = past.db.read_now(lambda conn: conn.execute(select(table).order_by(table.c.slot)).all())
    past.tally()
    past.tally(NOON + SECOND)
    assert past.db.read_now(lambda conn: conn.execute(select(table).order_by(table.c.slot)).all()) == before


def test_a_crash_in_the_middle_leaves_no_half_counts(past: Past) -> None:
    past.write(*history_of(past, Random(4)))

    def crash(conn: Connection) -> None:
        tallying.advance(conn, NOON, 50)
        raise RuntimeError("gone")

    past.tally(limit=50, steps=2)
    with pytest.raises(RuntimeError, match="gone"):
        past.db.write_now(crash)
    past.check()
    past.tally()
    past.check()


def test_what_retention_takes_is_taken_back(past: Past) -> None:
    past.write(*(ended(past.ours, NOON - n * MINUTE) for n in range(20, 200)))
    past.write(*(ended(past.theirs, NOON - n * MINUTE, S.FAILED) for n in range(0, 400, 20)))
    past.db.write_now(lambda conn: conn.execute(update(jobs_table).values(row_count=1000)))
    past.tally()
    later = NOON + 31 * 24 * HOUR
    for _ in range(3):
        past.db.write_now(partial(history.prune, now=later, runs=15, days=30, limit=70))
        past.check()
    assert past.count(executions) == 30
    past.tally(later)
    past.check()
    assert past.count(table) == len(past.truth())  # what is empty is gone too


def test_a_job_that_is_deleted_goes_with_its_history(past: Past) -> None:
    past.write(*history_of(past, Random(5)))
    past.tally()
    past.db.write_now(partial(jobs.remove, job_id=past.theirs.id))
    past.check()  # its open runs were cancelled, its service has nothing
    assert past.seen("mail") == {}
    while past.db.write_now(partial(history.prune, now=NOON, limit=40)):
        past.check()
    past.tally(NOON + HOUR)
    past.check()


def test_a_skipped_run_that_is_due_again_is_counted_as_what_it_becomes(past: Past) -> None:
    due = NOON - 2 * HOUR
    (run,) = past.write(held_back(past.ours, due))
    past.tally()
    assert past.seen()[due].states == {S.SKIPPED: 1}
    assert past.db.write_now(partial(revive, children=[past.ours.id], slot=due, now=NOON)) == 1
    past.check()
    past.tally()
    past.check()
    past.change(run, state="completed", started_at=NOON, completed_at=NOON + SECOND)
    past.tally()
    past.check()
    assert past.count(stragglers) == 0


def test_a_run_that_is_revived_before_it_is_tallied_is_counted_once(past: Past) -> None:
    due = NOON - 2 * MINUTE
    (run,) = past.write(held_back(past.ours, due))
    past.tally()
    past.db.write_now(partial(revive, children=[past.ours.id], slot=due, now=NOON))
    past.change(run, state="completed", started_at=NOON, completed_at=NOON)
    for later in (NOON, NOON + HOUR, NOON + HOUR):
        past.tally(later)
        past.check()


def test_a_clock_that_is_set_back_begins_anew(past: Past) -> None:
    past.write(*(ended(past.ours, NOON - n * MINUTE) for n in range(20, 100)))
    past.tally()
    past.write(ended(past.ours, NOON - 90 * MINUTE + SECOND))  # made at a time that was passed
    past.tally(NOON - 80 * MINUTE)
    past.check()


def test_too_many_stragglers_hold_it_back(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallying, "MOST", 5)
    past.write(*(a_row(past.ours, NOON - n * MINUTE, S.QUEUED) for n in range(20, 50)))
    past.tally(limit=4)
    assert past.count(stragglers) == 8
    past.check()


def test_what_moves_while_somebody_looks_is_counted_once(past: Past) -> None:
    past.write(*history_of(past, Random(6)))
    past.tally(limit=100, steps=2)
    moved: list[str] = []

    def move(conn: Connection, _: Any, statement: str, *__: Any) -> None:
        if not moved and "FROM tallies" in statement:
            moved.append(statement)
            past.tally()

    def look(conn: Connection) -> dict[datetime, Counted]:
        event.listen(conn, "before_cursor_execute", move)
        return tallies.counted(conn, AGO, LATER, Width.SLOT)

    assert past.db.read_now(look) == past.truth()
    assert moved


@contextmanager
def plans_of(conn: Connection) -> Iterator[list[str]]:
    plans: list[str] = []

    def before(conn: Connection, _: Any, statement: str, given: Any, *__: Any) -> None:
        if "executions" in statement and statement.lstrip().startswith("SELECT"):
            asking = conn.connection.cursor()
            asking.execute("EXPLAIN " + statement, given)
            plans.append("\n".join(str(row[-1]) for row in asking.fetchall()))
            asking.close()

    event.listen(conn, "before_cursor_execute", before)
    try:
        yield plans
    finally:
        event.remove(conn, "before_cursor_execute", before)


def test_postgres_reads_no_more_of_the_executions_than_it_must(postgres_db: Database) -> None:
    ours = as_new(postgres_db).write_now(lambda conn: jobs.add(conn, a_job()))
    past = Past(postgres_db, ours, ours)

    def fill(conn: Connection) -> None:
        rows = [ended(ours, NOON - n * SECOND, cause=Cause.SCHEDULE.value) for n in range(10_000)]
        conn.execute(executions.insert(), rows)
        conn.execute(
            executions.update().where(executions.c.scheduled_for == NOON - HOUR).values(state="queued")
        )

    postgres_db.write_now(fill)
    analyse(postgres_db)
    past.tally(limit=5000)
    looks: list[Callable[[Connection], Any]] = [
        lambda conn: tallies.counted(conn, AGO, NOON, Width.HOUR),
        lambda conn: tallying.advance(conn, NOON + 10 * SECOND, 500),
        lambda conn: tallying.fold(conn, NOON, 500),
    ]
    for look in looks:
        with postgres_db._writer.connect() as conn, conn.begin(), plans_of(conn) as plans:
            look(conn)
        assert plans
        assert not [plan for plan in plans if "Seq Scan on executions" in plan], "\n\n".join(plans)
