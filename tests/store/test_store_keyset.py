"""Paging by the last row seen: whole, without doubles, in the same order, whatever is added and removed."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import update

from noonday.domain.errors import Invalid
from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobState, Lane
from noonday.store import history, jobs
from noonday.store.database import Database
from noonday.store.history import ExecutionFilter
from noonday.store.job_search import ORDERS
from noonday.store.jobs import JobFilter
from noonday.store.pages import Mark, Page
from noonday.store.tables import jobs as jobs_table
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import add, plan

BOTH_WAYS = [way + order for order in ORDERS for way in ("", "-")]


def page(db: Database, order: str, after: Mark | None = None, limit: int = 3) -> Page[Job]:
    return db.read_now(lambda conn: jobs.find(conn, JobFilter(), limit, 0, order, after))


def whole(db: Database, order: str) -> list[str]:
    """All of them, page after page."""
    seen: list[str] = []
    found = page(db, order)
    while True:
        seen += [job.id for job in found.items]
        if found.next is None:
            return seen
        assert len(found.items) == 3
        found = page(db, order, found.next)


def crowd(db: Database, count: int = 20) -> list[Job]:
    """With many ties, and many that lack a time."""
    dice = Random(1)
    times = [None, NOON, NOON + timedelta(microseconds=1), NOON + timedelta(days=1)]
    made = [
        a_job(
            next_run_at=dice.choice(times),
            last_run_at=dice.choice(times),
            updated_at=NOON + timedelta(seconds=dice.randrange(3)),
            state=dice.choice(list(JobState)),
            lane=dice.choice(list(Lane)),
        )
        for _ in range(count)
    ]
    add(db, *made)
    return made


def test_it_shows_every_row_once_in_every_order(db: Database) -> None:
    made = crowd(db)
    for order in BOTH_WAYS:
        at_once = page(db, order, limit=200)
        assert at_once.next is None
        assert whole(db, order) == [job.id for job in at_once.items], order
        assert len(at_once.items) == len(made)


def test_it_puts_rows_without_a_value_last_both_ways(db: Database) -> None:
    crowd(db)
    for order in ("next_run_at", "-next_run_at"):
        found = [job.next_run_at for job in page(db, order, limit=200).items]
        timed = [at for at in found if at is not None]
        assert found == sorted(timed, reverse=order[0] == "-") + [None] * (len(found) - len(timed))


@pytest.mark.parametrize("order", ["created_at", "next_run_at", "-next_run_at", "-name"])
def test_it_misses_and_doubles_nothing_while_others_come_and_go(db: Database, order: str) -> None:
    made = crowd(db)
    first = page(db, order)
    gone = first.items[-1]  # the very row that the mark names
    db.write_now(lambda conn: jobs.remove(conn, gone.id))
    add(db, *(a_job(next_run_at=at) for at in (None, NOON, NOON - timedelta(days=9))))

    seen = [job.id for job in first.items]
    after = first.next
    while after is not None:
        following = page(db, order, after)
        seen += [job.id for job in following.items]
        after = following.next
    assert len(seen) == len(set(seen))
    assert {job.id for job in made} <= set(seen)


def test_it_goes_on_where_a_moved_row_was(db: Database) -> None:
    made = crowd(db)
    first = page(db, "next_run_at")
    moved = first.items[-1]
    later = {"next_run_at": NOON + timedelta(days=30)}
    db.write_now(
        lambda conn: conn.execute(update(jobs_table).where(jobs_table.c.id == moved.id).values(later))
    )
    rest, after = set[str](), first.next
    while after is not None:
        following = page(db, "next_run_at", after)
        rest |= {job.id for job in following.items}
        after = following.next
    assert rest == {job.id for job in made} - {job.id for job in first.items[:-1]}


def test_it_pages_over_times_that_people_wrote(sqlite_db: Database) -> None:
    made = crowd(sqlite_db, 8)
    texts = ["2027-01-01T12:00:00Z", "2027-01-01 12:00", "2027-01-01T12:00:00+01:00", "2026-06-01"]
    for job, text in zip(made, texts, strict=False):
        sqlite_db.write_now(
            lambda conn, job=job, text=text: conn.exec_driver_sql(  # type: ignore[misc]  # bound per turn
                "UPDATE jobs SET next_run_at = ? WHERE id = ?", (text, job.id)
            )
        )
    for order in ("next_run_at", "-next_run_at"):
        assert sorted(whole(sqlite_db, order)) == sorted(job.id for job in made)


def test_it_counts_a_row_that_cannot_be_read(db: Database) -> None:
    made = crowd(db, 7)
    db.write_now(
        lambda conn: conn.execute(
            update(jobs_table).where(jobs_table.c.id == made[2].id).values(target={"type": "odd"})
        )
    )
    first = page(db, "created_at")
    assert [job.id for job in first.items] == [made[0].id, made[1].id]
    assert first.next is not None
    assert [job.id for job in page(db, "created_at", first.next).items] == [job.id for job in made[3:6]]


def test_it_pages_over_the_history_of_a_job_and_of_all(db: Database) -> None:
    dice = Random(2)
    owners = [a_job(), a_job()]
    add(db, *owners)
    for n in range(20):
        due = NOON + timedelta(minutes=dice.randrange(200), seconds=n)
        plan(db, an_execution(job=owners[n % 2], scheduled_for=due, created_at=NOON))

    def runs(job_id: str | None, after: Mark | None, limit: int) -> Page[Execution]:
        return db.read_now(lambda conn: history.find(conn, ExecutionFilter(job_id=job_id), limit, 0, after))

    for job_id in (None, owners[0].id):
        expected = [run.id for run in runs(job_id, None, 200).items]
        seen: list[str] = []
        found = runs(job_id, None, 3)
        while found.next is not None:
            seen += [run.id for run in found.items]
            found = runs(job_id, found.next, 3)
        assert seen + [run.id for run in found.items] == expected


@pytest.mark.parametrize(
    ("order", "mark"),
    [
        ("name", Mark(order="-name", key="a", id="00000000-0000-7000-8000-000000000001")),
        ("name", Mark(order="status", key="a", id="00000000-0000-7000-8000-000000000001")),
        ("odd", Mark(order="odd", key="a", id="00000000-0000-7000-8000-000000000001")),
        ("priority", Mark(order="priority", key="x", id="00000000-0000-7000-8000-000000000001")),
    ],
)
def test_it_refuses_a_mark_that_does_not_fit(db: Database, order: str, mark: Mark) -> None:
    add(db, a_job())
    with pytest.raises(Invalid):
        page(db, order, mark)


def test_it_goes_on_after_a_number_that_no_row_has(db: Database) -> None:
    add(db, a_job())
    mark = Mark(order="priority", key="9" * 17, id="00000000-0000-7000-8000-000000000001")
    assert page(db, "priority", mark).items == ()


@pytest.mark.parametrize("key", ["soon", "2027-13-01", ""])
def test_it_refuses_a_mark_whose_time_is_none(postgres_db: Database, key: str) -> None:
    mark = Mark(order="next_run_at", key=key, id="00000000-0000-7000-8000-000000000001")
    with pytest.raises(Invalid):
        page(postgres_db, "next_run_at", mark)
    with pytest.raises(Invalid):
        page(postgres_db, "next_run_at", Mark(order="next_run_at", key=None, id="no uuid"))
