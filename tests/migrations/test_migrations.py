from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect

from noonday.domain.outcome import Completed
from noonday.store import (
    audit,
    executions,
    front_tables,  # noqa: F401 - its tables belong to the same metadata
    history,
    jobs,
    meta,
    migrate,
    outbox,
)
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from noonday.store.migrations import plain_sql_0001
from noonday.store.tables import metadata
from tests.factories import LEASE, NOON, a_job, an_execution

STEPS = ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"]
HEAD = STEPS[-1]
TABLES = {"jobs", "executions", "attempts", "job_dependencies", "audit", "outbox", "instances", "meta"}
TABLES |= {"leadership", "breakers", "locks"}
TABLES |= {"sessions", "outputs", "tallies", "stragglers"}
TABLES |= {"api_keys", "replays", "deliveries", "services", "declarations", "events"}
VIEWS = {"job_executions", "schedules", "job_schedules", "scheduled_jobs"}


@contextmanager
def opened(url: str) -> Iterator[Database]:
    db = Database(url)
    try:
        yield db
    finally:
        db.close_now()


def names(url: str) -> tuple[set[str], set[str]]:
    with opened(url) as db:
        tables = db.read_now(lambda conn: set(inspect(conn).get_table_names()))
        views = db.read_now(lambda conn: set(inspect(conn).get_view_names()))
    return tables - {"alembic_version"}, views


def fill(url: str) -> str:
    """Something in every table, by the store's own verbs."""
    parent = a_job()
    job = a_job(depends_on=(), on_success_of=(parent.id,), tags=("x",), next_run_at=NOON)
    execution = an_execution(job=parent)

    def work(conn: Connection) -> None:
        jobs.add(conn, parent)
        jobs.add(conn, job)
        executions.plan(conn, [execution])
        order = ClaimOrder(instance_id="i", limit=5, now=NOON, lease=LEASE)
        (claimed,) = executions.claim(conn, order)
        token = claimed.execution.lease_token or ""
        executions.settle(conn, [Ending(execution_id=execution.id, token=token, outcome=Completed())], NOON)
        audit.record(conn, AuditEntry(NOON, "ada", "create", "job", job.id, None, {"a": 1}))
        outbox.add(conn, "k", {}, NOON)
        meta.secret(conn)

    with opened(url) as db:
        db.write_now(work)
        assert db.read_now(history.page).total == 2
    return job.id


def test_up_down_and_up_again_with_data_in_the_tables(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    assert migrate.pending(empty_url) == STEPS
    migrate.upgrade(empty_url)
    assert migrate.current(empty_url) == HEAD
    assert migrate.pending(empty_url) == []
    assert names(empty_url) == (TABLES, VIEWS)
    fill(empty_url)
    migrate.downgrade(empty_url)
    assert migrate.current(empty_url) is None
    assert names(empty_url) == (set(), set())
    migrate.upgrade(empty_url)
    fill(empty_url)


def test_upgrading_again_changes_nothing(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    job_id = fill(empty_url)
    migrate.upgrade(empty_url)
    with opened(empty_url) as db:
        assert db.read_now(lambda conn: jobs.get(conn, job_id)) is not None


def test_the_migrations_make_the_tables_that_the_code_sees(db_url: str) -> None:
    """A change of tables.py without a migration shows here."""

    def differences(conn: Connection) -> list[object]:
        here = conn.dialect.name

        def wanted(thing: object, name: str | None, kind: str, reflected: bool, other: object) -> bool:
            return not (kind == "index" and name == "jobs_lock_idx" and here == "postgresql")

        options = {"compare_type": True, "compare_server_default": False, "include_object": wanted}
        context = MigrationContext.configure(conn, opts=options)
        return [found for found in compare_metadata(context, metadata) if found[0] != "remove_table"]

    with opened(db_url) as db:
        assert db.read_now(differences) == []


def test_it_brings_its_own_settings_for_busy_tables(postgres_url: str) -> None:
    query = "SELECT relname, reloptions FROM pg_class WHERE relname IN ('jobs', 'executions')"
    with opened(postgres_url) as db:
        found = db.read_now(lambda conn: conn.exec_driver_sql(query).all())
    assert len(found) == 2
    for _, options in found:
        assert "autovacuum_vacuum_scale_factor=0.05" in options


def test_three_processes_may_migrate_at_once(empty_url: str) -> None:
    program = "import sys; from noonday.store import migrate; migrate.upgrade(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, empty_url], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [process.communicate(timeout=100)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], told
    assert migrate.current(empty_url) == HEAD
    fill(empty_url)


def test_a_migration_that_fails_leaves_things_as_they_were(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_sql_0001, "statements", lambda dialect: ["this is no SQL"])
    with pytest.raises(Exception, match="syntax error"):
        migrate.upgrade(empty_url)
    assert migrate.current(empty_url) is None
    assert names(empty_url)[0] == set()
    monkeypatch.undo()
    migrate.upgrade(empty_url)
    fill(empty_url)
