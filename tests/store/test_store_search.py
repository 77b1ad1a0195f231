"""Searches over real tables, compared with a plain reading of the same terms; the same on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from noonday.domain import search_fields
from noonday.domain.execution import Cause, Execution, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState, Lane
from noonday.domain.schedule import Cron, Manual, Schedule
from noonday.domain.search_values import Field, Kind
from noonday.domain.searching import Searchable, parse
from noonday.domain.target import CommandTarget, FetchTarget, HttpTarget, ServiceTarget
from noonday.store import history, jobs
from noonday.store.database import Database
from noonday.store.front_tables import declarations
from noonday.store.history import ExecutionFilter
from noonday.store.jobs import JobFilter
from noonday.store.tables import executions as executions_table
from noonday.store.tables import jobs as jobs_table
from tests.factories import NOON, a_job, a_timing, an_execution
from tests.store import search_oracle
from tests.store.store_steps import add, plan

DAY = timedelta(days=1)
SCHEDULES: list[Schedule] = [Cron(expression="* * * * *"), Manual()]
TARGETS = [
    CommandTarget(argv=("true",)),
    FetchTarget(url="https://Example.com/a_b"),
    HttpTarget(url="https://example.org/100%"),
    ServiceTarget(service="email", endpoint="/x"),
    ServiceTarget(service="mail", endpoint="/x"),
]
NAMES = ["digest", "Digest mail", "night_ly", "night%ly", "a/b", 'say "hi"', "back\\slash", "old, new"]
TAGS = ["nightly", "Nightly", "old", "a b", "100%", "none"]


def world(db: Database) -> dict[str, tuple[Job, str | None]]:
    """Thirty jobs with everything mixed, and whose they are."""
    dice = Random(7)
    made: dict[str, tuple[Job, str | None]] = {}
    for n in range(30):
        target = dice.choice(TARGETS)
        job = a_job(
            name=f"{dice.choice(NAMES)} {n}" if n >= len(NAMES) else NAMES[n],
            tags=tuple(dice.sample(TAGS, dice.randrange(3))),
            timing=a_timing(dice.choice(SCHEDULES), timezone="Europe/Berlin"),
            target=target,
            source_id=dice.choice([None, "s1", "s2"]),
            lane=dice.choice(list(Lane)),
            scheduler_version=dice.choice([1, 2]),
            state=dice.choice([JobState.SCHEDULED, JobState.FAILED, JobState.CANCELLED]),
            enabled=dice.random() < 0.7,
            paused=dice.random() < 0.3,
            next_run_at=dice.choice([None, NOON, NOON + timedelta(hours=dice.randrange(48))]),
            last_run_at=dice.choice([None, NOON - timedelta(hours=dice.randrange(99))]),
            last_status=dice.choice([None, "failed", "completed"]),
            created_at=NOON - dice.randrange(9) * DAY,
        )
        owner = target.service if isinstance(target, ServiceTarget) else None
        add(db, job)
        if dice.random() < 0.3:
            owner = dice.choice(["email", "Billing"])
            row = {"job_id": job.id, "service": owner, "body": {}, "declared_at": NOON}
            db.write_now(lambda conn, row=row: conn.execute(insert(declarations).values(row)))  # type: ignore[misc]
        made[job.id] = (job, owner)
    return made


def question(dice: Random, searchable: Searchable, names: list[str]) -> str:
    """Any one to three terms."""
    terms = []
    for _ in range(dice.randint(1, 3)):
        name = dice.choice(["", *searchable.fields])
        values = [_value(dice, name, searchable.fields.get(name), names) for _ in range(dice.randint(1, 2))]
        terms.append(f"{dice.choice(['', '', '-'])}{name and name + ':'}{','.join(values)}")
    return " ".join(terms)


def _value(dice: Random, name: str, field: Field | None, names: list[str]) -> str:
    kind = Kind.TEXT if field is None else field.kind
    if field is not None and field.optional and dice.random() < 0.2:
        return "none"
    op = dice.choice(["<", "<=", ">", ">="])
    match kind:
        case Kind.CHOICE:
            assert field is not None
            return dice.choice(field.choices)
        case Kind.FLAG:
            return dice.choice(["yes", "no"])
        case Kind.NUMBER:
            return f"{dice.choice(['', op])}{dice.randrange(4)}"
        case Kind.PAST | Kind.FUTURE:
            span = f"{op}{dice.randrange(72)}h"
            return dice.choice([span, f"{dice.choice(['', op])}2026-12-{dice.randint(23, 31)}"])
        case Kind.SPAN:
            return f"{op}{dice.randrange(90)}s"
    if dice.random() < 0.3:
        return dice.choice(["*a*", "d*", "*%*", "*_*", "e*l", "*t", "*"])
    text = dice.choice(names).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def test_it_finds_the_jobs_that_a_plain_reading_finds(db: Database) -> None:
    made = world(db)
    values = {job_id: search_oracle.of_job(job, owner) for job_id, (job, owner) in made.items()}
    words = NAMES + TAGS + ["email", "BILLING", "s1", "https://example.com/a_b", "europe/berlin", *made]
    dice = Random(11)
    sizes = set()
    for _ in range(120):
        text = question(dice, search_fields.JOBS, words)
        terms = parse(text, search_fields.JOBS, NOON)
        expected = {job_id for job_id, held in values.items() if search_oracle.holds(terms, held)}
        page = db.read_now(lambda conn, t=terms: jobs.find(conn, JobFilter(terms=t), limit=200))  # type: ignore[misc]
        assert {job.id for job in page.items} == expected, text
        assert page.total == len(expected)
        sizes.add(len(expected))
    assert len(sizes) > 8, "the questions are too easy"


def _runs(made: dict[str, tuple[Job, str | None]]) -> list[Execution]:
    dice = Random(3)
    runs = []
    for n, (job, _) in enumerate(made.values()):
        due = NOON - timedelta(hours=dice.randrange(60))
        started = dice.choice([None, due + timedelta(seconds=dice.randrange(60))])
        state = dice.choice(list(ExecutionState))
        run = an_execution(
            job=job,
            scheduled_for=due,
            cause=dice.choice([Cause.SCHEDULE, Cause.MANUAL]),
            state=state,
            number=n % 4,
            triggered_by=dice.choice([None, "ada", "Bob"]),
            skip_reason=dice.choice([None, *SkipReason]) if state is ExecutionState.SKIPPED else None,
            error=dice.choice([None, "went 100% wrong", "digest failed"]),
            attempt=dice.randrange(3),
            started_at=started,
            completed_at=None if started is None else started + timedelta(seconds=dice.randrange(90)),
            instance_id=dice.choice([None, "web-1"]),
        )
        runs.append(run)
    return runs


def _stored(conn: Connection, runs: list[Execution]) -> None:
    """What a plan does not write: the course of a run."""
    for run in runs:
        names = ("attempt", "started_at", "completed_at", "instance_id")
        course = {name: getattr(run, name) for name in names}
        conn.execute(update(executions_table).where(executions_table.c.id == run.id).values(course))


def test_it_finds_the_executions_that_a_plain_reading_finds(db: Database) -> None:
    made = world(db)
    runs = _runs(made)
    plan(db, *runs)
    db.write_now(lambda conn: _stored(conn, runs))
    seen = db.read_now(lambda conn: history.find(conn, ExecutionFilter(), 200)).items
    assert len(seen) == len(runs)
    values = {run.id: search_oracle.of_execution(run, *made[run.job_id]) for run in seen}
    words = [*NAMES, *TAGS, "email", "ada", "BOB", "web-1", "went 100% wrong", *made, *values]
    dice = Random(5)
    for _ in range(80):
        text = question(dice, search_fields.EXECUTIONS, words)
        terms = parse(text, search_fields.EXECUTIONS, NOON)
        expected = {run_id for run_id, held in values.items() if search_oracle.holds(terms, held)}
        page = db.read_now(lambda conn, t=terms: history.find(conn, ExecutionFilter(terms=t), 200))  # type: ignore[misc]
        assert {run.id for run in page.items} == expected, text
        assert page.total == len(expected)


def test_it_knows_whose_jobs_and_executions_are(db: Database) -> None:
    made = world(db)
    plan(db, *_runs(made))
    mine = {job_id for job_id, (_, owner) in made.items() if owner == "email"}
    assert mine

    page = db.read_now(lambda conn: jobs.find(conn, JobFilter(service="email"), limit=200))
    assert {job.id for job in page.items} == mine
    runs = db.read_now(lambda conn: history.find(conn, ExecutionFilter(service="email"), 200))
    assert {run.job_id for run in runs.items} == mine
    assert db.read_now(lambda conn: jobs.count(conn, JobFilter(service=""))) == 0


@pytest.mark.parametrize("name", ["Übersicht", "ΣΟΦΟΣ", "İstanbul", "日報", "straße"])
def test_it_finds_a_name_as_it_is_written_in_any_alphabet(db: Database, name: str) -> None:
    add(db, a_job(name=name), a_job(name="other"))
    for text in (f'name:"{name}"', name, f"*{name[1:]}"):
        terms = parse(text, search_fields.JOBS, NOON)
        found = db.read_now(lambda conn, t=terms: jobs.find(conn, JobFilter(terms=t)))  # type: ignore[misc]
        assert [job.name for job in found.items] == [name], text
    assert db.read_now(lambda conn: jobs.count(conn, JobFilter(name=name))) == 1


def test_it_does_not_stumble_over_rows_that_people_wrote(db: Database) -> None:
    odd: list[Any] = [None, "text", 7, {"a": "nightly"}, [1, None, "nightly"], []]
    made = [a_job(name=f"odd-{n}") for n in range(len(odd))]
    add(db, *made)

    def spoil(conn: Connection) -> None:
        for job, tags in zip(made, odd, strict=True):
            values = {"target": None, "url": "https://a.example"}
            if tags is not None:
                values["tags"] = tags
            conn.execute(update(jobs_table).where(jobs_table.c.id == job.id).values(values))

    db.write_now(spoil)
    for text in ("tag:nightly", "-tag:nightly", "tag:none", "service:x", "target:fetch", "tag:*"):
        terms = parse(text, search_fields.JOBS, NOON)
        db.read_now(lambda conn, t=terms: jobs.count(conn, JobFilter(terms=t)))  # type: ignore[misc]
    terms = parse("tag:nightly", search_fields.JOBS, NOON)
    assert db.read_now(lambda conn: jobs.count(conn, JobFilter(terms=terms))) >= 1
    fetching = parse("target:fetch", search_fields.JOBS, NOON)
    assert db.read_now(lambda conn: jobs.count(conn, JobFilter(terms=fetching))) == len(odd)


def test_it_compares_with_numbers_beyond_the_columns(db: Database) -> None:
    add(db, a_job())
    huge = "9" * 15
    for text, count in ((f"priority:<{huge}", 1), (f"version:{huge}", 0), (f"-priority:>={huge}", 1)):
        terms = parse(text, search_fields.JOBS, NOON)
        assert db.read_now(lambda conn, t=terms: jobs.count(conn, JobFilter(terms=t))) == count  # type: ignore[misc]
    terms = parse(f"attempt:<{huge} number:<{huge}", search_fields.EXECUTIONS, NOON)
    assert db.read_now(lambda conn: history.find(conn, ExecutionFilter(terms=terms))).total == 0


def test_it_takes_names_of_many_ids_at_once(db: Database) -> None:
    made = [a_job() for _ in range(5)]
    add(db, *made)
    some = JobFilter(ids=frozenset({made[0].id, made[3].id, "no id", made[4].id}))

    def named(after: str = "", limit: int = 9) -> dict[Any, str]:
        return db.read_now(lambda conn: jobs.named(conn, some, limit, after))

    assert named() == {job.id: job.name for job in (made[0], made[3], made[4])}
    assert list(named(after=made[0].id, limit=1)) == [made[3].id]
    assert db.read_now(lambda conn: jobs.named(conn, replace(some, ids=frozenset()), 9)) == {}
