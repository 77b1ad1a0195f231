from __future__ import annotations

from dataclasses import replace
from datetime import date, time, timedelta
from functools import partial

import pytest

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.errors import Conflict, NotFound
from noonday.domain.job import (
    CatchUp,
    Job,
    JobState,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    Retention,
    RetryPolicy,
    Trigger,
)
from noonday.domain.schedule import (
    Cron,
    Event,
    Frequency,
    Immediate,
    Interval,
    IntervalUnit,
    Manual,
    Once,
    Schedule,
)
from noonday.domain.target import (
    CommandTarget,
    FetchTarget,
    HttpTarget,
    PythonTarget,
    ServiceTarget,
    Target,
)
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.jobs import JobFilter
from noonday.store.pages import Page
from tests.factories import NOON, a_job, a_timing, an_id
from tests.store.store_steps import SECOND, add, job_now

SCHEDULES: list[Schedule] = [
    Cron(expression="H 2 * * MON#1"),
    Interval(count=6, unit=IntervalUnit.HOURS),
    Interval(count=30, unit=IntervalUnit.SECONDS, after_completion=True),
    Frequency(frequency="hourly", minute=15),
    Frequency(frequency="daily", hour=2, minute=30),
    Frequency(frequency="weekly", hour=2, day=7),
    Frequency(frequency="monthly", hour=2, day_of_month=31),
    Immediate(),
    Once(run_at=NOON + timedelta(microseconds=123456)),
    Event(),
    Manual(),
]
TARGETS: list[Target] = [
    HttpTarget(
        url="https://a.example/x",
        method="PUT",
        headers={"A": "b"},
        body={"k": [1]},
        expected_status=(200, 204),
    ),
    ServiceTarget(service="email-service", endpoint="/api/jobs/digest"),
    FetchTarget(url="https://a.example/feed"),
    FetchTarget(url="https://a.example/feed", headers={"Accept": "text/csv"}),
    PythonTarget(task="pkg.mod:run", args=(1, "zwei", None), kwargs={"deep": {"x": [1.5]}}),
    CommandTarget(argv=("echo", "a b"), env={"A": "1"}, cwd="/", stdin="in", cpu_seconds=3, memory_mb=64),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: f"{s.type}")
def test_it_keeps_every_kind_of_schedule(db: Database, schedule: Schedule) -> None:
    job = a_job(schedule=schedule)
    add(db, job)
    assert job_now(db, job) == job


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.type}")
def test_it_keeps_every_kind_of_target(db: Database, target: Target) -> None:
    job = a_job(target=target)
    add(db, job)
    assert job_now(db, job) == job


def a_full_job() -> Job:
    availability = Availability(
        windows=(Window(days=frozenset({1, 5}), start=time(8), end=time(18, 30, 5)),),
        calendar=Calendar(excluded_dates=frozenset({date(2027, 12, 24)}), holidays_of="DE-BY"),
        outside=Outside.MOVE,
    )
    timing = a_timing(
        Cron(expression="0 9 * * *"),
        timezone="Europe/Berlin",
        start_at=NOON,
        end_at=NOON + timedelta(days=3),
        max_runs=7,
        jitter=timedelta(seconds=1.5),
        availability=availability,
    )
    return a_job(
        timing=timing,
        description="täglich \N{SNOWMAN}",
        tags=("a", "b"),
        source_id="s-1",
        config={"n": 1, "deep": {"list": [1, 2.5, None, True]}},
        metadata={"team": "x"},
        lane=Lane.HIGH,
        timeout=timedelta(seconds=0.5),
        misfire=MisfirePolicy(grace=timedelta(seconds=5), coalesce=False, catch_up=CatchUp.ALL),
        overlapping=OverlapPolicy(max_instances=3, overlap=Overlap.QUEUE_ONE),
        retry=RetryPolicy(max_retries=0, backoff=timedelta(seconds=2), jitter=True, on_lost=OnLost.FAIL),
        trigger=Trigger(webhook="/sources/*/crawl", channel="content:new"),
        retention=Retention(runs=5, days=2),
        scheduler_version=2,
        state=JobState.PAUSED,
        enabled=False,
        paused=True,
        next_run_at=NOON,
        last_run_at=NOON - SECOND,
        last_status="failed",
        fire_count=3,
        retry_count=2,
        revision=9,
    )


def test_it_keeps_everything_about_a_job(db: Database) -> None:
    job = a_full_job()
    add(db, job)
    assert job_now(db, job) == job


def test_saving_changes_everything_and_raises_the_revision(db: Database) -> None:
    job = a_job()
    add(db, job)
    full = replace(a_full_job(), id=job.id, revision=1)
    saved = db.write_now(lambda conn: jobs.save(conn, full))
    assert saved.revision == 2
    assert job_now(db, job) == saved


def test_many_jobs_can_be_added_at_once(db: Database) -> None:
    parent, full = a_job(), a_full_job()
    child = a_job(depends_on=(parent.id,), on_success_of=(full.id,))
    db.write_now(lambda conn: jobs.add_many(conn, [parent, full, child]))
    assert [job_now(db, job) for job in (parent, full, child)] == [parent, full, child]
    edges = db.read_now(lambda conn: jobs.edges_above(conn, [child.id]))
    assert set(edges[child.id]) == {parent.id, full.id}
    with pytest.raises(Conflict):
        db.write_now(lambda conn: jobs.add_many(conn, [a_job(), a_job(name=parent.name)]))
    assert db.read_now(jobs.find).total == 3


@pytest.mark.parametrize("count", [7, 8, 20])
def test_jobs_that_are_much_alike_can_be_added_at_once(db: Database, count: int) -> None:
    odd = {"a": 'a "quoted" \\ text', "b": [1, 1.0, True, None]}
    alike = [a_job(config=odd, description="{NULL}, 'all' of them") for _ in range(count)]
    db.write_now(lambda conn: jobs.add_many(conn, alike))
    assert [job_now(db, job) for job in alike] == alike
    mixed = [a_full_job(), *(a_job() for _ in range(count))]
    mixed = [replace(job, source_id="x" if place % 2 else None) for place, job in enumerate(mixed)]
    db.write_now(lambda conn: jobs.add_many(conn, mixed))
    assert [job_now(db, job) for job in mixed] == mixed


def test_a_taken_name_is_a_conflict_that_names_it(db: Database) -> None:
    add(db, a_job(name="digest"))
    with pytest.raises(Conflict, match="digest"):
        add(db, a_job(name="digest"))


def test_renaming_to_a_taken_name_is_a_conflict(db: Database) -> None:
    job = a_job(name="other")
    add(db, a_job(name="digest"), job)
    with pytest.raises(Conflict, match="digest"):
        db.write_now(lambda conn: jobs.save(conn, replace(job, name="digest")))


def test_it_finds_a_job_by_id_and_by_name(db: Database) -> None:
    job = a_job(name="digest")
    add(db, job)
    assert db.read_now(lambda conn: jobs.resolve(conn, job.id)) == job
    assert db.read_now(lambda conn: jobs.resolve(conn, "digest")) == job
    assert db.write_now(lambda conn: jobs.lock(conn, "digest")) == job
    assert db.read_now(lambda conn: jobs.by_name(conn, "digest")) == job


def test_an_unknown_job_is_named_in_the_error(db: Database) -> None:
    with pytest.raises(NotFound, match="nobody"):
        db.read_now(lambda conn: jobs.resolve(conn, "nobody"))
    assert db.read_now(lambda conn: jobs.get(conn, "nobody")) is None
    assert db.read_now(lambda conn: jobs.get(conn, an_id())) is None


def test_saving_a_job_that_is_gone_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound):
        db.write_now(lambda conn: jobs.save(conn, a_job()))


def test_a_removed_job_is_gone(db: Database) -> None:
    job = a_job()
    add(db, job)
    assert db.write_now(lambda conn: jobs.remove(conn, job.id))
    assert db.read_now(lambda conn: jobs.get(conn, job.id)) is None
    assert not db.write_now(lambda conn: jobs.remove(conn, job.id))


def find(db: Database, wanted: JobFilter = JobFilter(), **how: object) -> Page[Job]:  # noqa: B008 - frozen
    return db.read_now(lambda conn: jobs.find(conn, wanted, **how))  # type: ignore[arg-type]  # passed on


def test_it_filters(db: Database) -> None:
    one = a_job(name="Nightly Report", tags=("mail", "x"), lane=Lane.HIGH, source_id="s", enabled=False)
    two = a_job(name="100% other", schedule=Manual(), state=JobState.FAILED)
    add(db, one, two)
    expected = {
        JobFilter(tag="mail"): one,
        JobFilter(name="report"): one,
        JobFilter(name="0%"): two,
        JobFilter(priority=Lane.HIGH): one,
        JobFilter(source_id="s"): one,
        JobFilter(enabled=False): one,
        JobFilter(enabled=True): two,
        JobFilter(status=JobState.FAILED): two,
        JobFilter(schedule_type="manual"): two,
    }
    for wanted, job in expected.items():
        page = find(db, wanted)
        assert (page.items, page.total) == ((job,), 1), wanted
    assert find(db, JobFilter(tag="mai")).total == 0
    assert find(db, JobFilter(name="%e")).total == 0


def test_it_pages_newest_first_and_tells_the_total(db: Database) -> None:
    made = [a_job() for _ in range(5)]
    add(db, *made)
    page = find(db, limit=2, offset=1)
    assert [job.id for job in page.items] == [made[3].id, made[2].id]
    assert (page.total, page.limit, page.offset) == (5, 2, 1)


def test_the_total_is_the_same_on_every_page(db: Database) -> None:
    add(db, *(a_job() for _ in range(5)))
    pages = [find(db, limit=2, offset=offset) for offset in (0, 2, 4, 5, 9)]
    assert [(page.total, page.least) for page in pages] == [(5, False)] * 5
    assert [page.next is None for page in pages] == [False, False, True, True, True]
    last = db.read_now(lambda conn: jobs.find(conn, limit=2, after=pages[1].next))
    assert (len(last.items), last.total) == (1, 5)
    assert find(db, JobFilter(name="no such")).total == 0


def test_what_is_known_already_is_not_counted(db: Database) -> None:
    add(db, *(a_job() for _ in range(5)))
    first, last = (db.read_now(partial(jobs.find, limit=2, offset=offset, at_least=3)) for offset in (0, 4))
    assert (first.total, first.least) == (3, True)
    assert (last.total, last.least) == (5, False), "the end is in sight"


def test_it_orders(db: Database) -> None:
    one = a_job(name="b", next_run_at=NOON)
    two = a_job(name="a", next_run_at=None)
    three = a_job(name="c", next_run_at=NOON - SECOND)
    add(db, one, two, three)
    assert [job.name for job in find(db, order="name").items] == ["a", "b", "c"]
    assert [job.name for job in find(db, order="-name").items] == ["c", "b", "a"]
    assert [job.name for job in find(db, order="next_run_at").items] == ["c", "b", "a"]
    assert [job.name for job in find(db, order="-next_run_at").items] == ["b", "c", "a"]


def test_it_knows_which_ids_are_jobs(db: Database) -> None:
    job = a_job()
    add(db, job)
    assert db.read_now(lambda conn: jobs.known(conn, [job.id, an_id(), "nonsense"])) == {job.id}
    assert db.read_now(lambda conn: jobs.known(conn, [])) == set()


def test_it_tells_the_edges_above_of_both_kinds(db: Database) -> None:
    top = a_job()
    middle = a_job(depends_on=(top.id,))
    side = a_job()
    low = a_job(depends_on=(middle.id,), on_success_of=(side.id,))
    add(db, top, middle, side, low)
    edges = db.read_now(lambda conn: jobs.edges_above(conn, [low.id]))
    assert {job: set(parents) for job, parents in edges.items()} == {
        low.id: {middle.id, side.id},
        middle.id: {top.id},
    }


def test_saving_replaces_the_edges(db: Database) -> None:
    one, two = a_job(), a_job()
    child = a_job(depends_on=(one.id,))
    add(db, one, two, child)
    db.write_now(lambda conn: jobs.save(conn, replace(child, depends_on=(two.id,))))
    assert db.read_now(lambda conn: jobs.edges_above(conn, [child.id])) == {child.id: (two.id,)}


def test_it_counts_jobs_by_state(db: Database) -> None:
    add(db, a_job(), a_job(), a_job(state=JobState.FAILED))
    assert db.read_now(jobs.count_by_state) == {JobState.SCHEDULED: 2, JobState.FAILED: 1}


def test_many_references_are_read_in_one_look(db: Database) -> None:
    one, other = a_job(name="one"), a_job(name="other")
    tricky = a_job(name=one.id)  # a name that is the id of another job: the id goes first
    for job in (one, other, tricky):
        add(db, job)
    asked = [one.id, "other", "nobody", an_id()]
    found = db.read_now(lambda conn: jobs.ids_of(conn, asked))
    assert found == {one.id: one.id, "other": other.id}
    resolved = db.read_now(lambda conn: {ref: jobs.resolve(conn, ref).id for ref in found})
    assert resolved == found
