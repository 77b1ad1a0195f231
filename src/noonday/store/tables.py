"""The tables as the code sees them; the migrations make them.

`jobs` has the column names that people and services know from plain SQL, with defaults for everything, so
that a hand-written INSERT makes a job. `executions` are named as the fields of `domain.execution.Execution`.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy import text as sql
from sqlalchemy.types import TypeEngine

from noonday.store.columns import Id, Instant, Json, fresh_id, utc_now

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)


Kind = TypeEngine[Any] | type[TypeEngine[Any]]


def kept(name: str, kind: Kind, default: str | None = None) -> Column[Any]:
    """A column that always has a value; `default` is SQL."""
    return Column(name, kind, nullable=False, server_default=None if default is None else sql(default))


_ARMED = sql("next_run_at IS NOT NULL AND schedule_enabled AND NOT is_paused")
_OPEN = sql("state = 'pending' OR state = 'queued' OR state = 'running'")
_CLAIMABLE = sql("(state = 'pending' OR state = 'queued') AND available_at IS NOT NULL")
_UNFED = sql(f"{_CLAIMABLE.text} AND road = 2 AND enqueued_at IS NULL")

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, primary_key=True, server_default=fresh_id()),
    Column("name", Text, unique=True),
    kept("description", Text, "''"),
    kept("tags", Json, "'[]'"),
    Column("source_id", Text),
    Column("url", Text),
    Column("target", Json),
    # when
    Column("schedule_type", Text),
    Column("cron_expression", Text),
    Column("interval_minutes", BigInteger),
    Column("interval_type", Text),
    kept("after_completion", Boolean, "false"),
    Column("schedule_time", Text),
    Column("run_at", Instant),
    Column("frequency", Text),
    Column("time_config", Json),
    kept("timezone", Text, "'UTC'"),
    Column("anchor_at", Instant),
    Column("start_at", Instant),
    Column("end_at", Instant),
    Column("max_runs", Integer),
    kept("jitter_seconds", Float, "0"),
    Column("windows", Json),
    Column("calendar", Json),
    kept("outside", Text, "'skip'"),
    # how
    kept("priority", SmallInteger, "2"),
    kept("timeout_seconds", Float, "3600"),
    kept("misfire_grace_seconds", Float, "300"),
    kept("coalesce", Boolean, "true"),
    kept("catch_up", Text, "'none'"),
    kept("max_instances", Integer, "1"),
    kept("overlap", Text, "'skip'"),
    kept("max_retries", Integer, "3"),
    kept("retry_backoff_seconds", Float, "60"),
    kept("retry_jitter", Boolean, "false"),
    kept("on_lost", Text, "'rerun'"),
    Column("trigger_webhook", Text),
    Column("trigger_channel", Text),
    Column("retention_runs", Integer),
    Column("retention_days", Integer),
    kept("depends_on", Json, "'[]'"),
    kept("on_success_of", Json, "'[]'"),
    kept("scheduler_version", SmallInteger, "1"),
    kept("config", Json, "'{}'"),
    kept("metadata", Json, "'{}'"),
    # what the scheduler keeps
    kept("status", Text, "'pending'"),
    kept("schedule_enabled", Boolean, "true"),
    kept("is_paused", Boolean, "false"),
    Column("paused_until", Instant),
    Column("skipped_through", Instant),
    Column("next_run_at", Instant),
    Column("last_run_at", Instant),
    Column("last_status", Text),
    Column("last_status_for", Instant),
    Column("last_success_at", Instant),
    Column("last_success_for", Instant),
    kept("fire_count", BigInteger, "0"),
    kept("current_retry_count", Integer, "0"),
    kept("execution_count", BigInteger, "0"),
    kept("row_count", BigInteger, "0"),  # rows of history planned and not pruned: a hint for the pruner
    Column("lock_token", Text),
    Column("lock_acquired_at", Instant),
    Column("created_at", Instant, nullable=False, server_default=utc_now()),
    Column("updated_at", Instant, nullable=False, server_default=utc_now()),
    kept("revision", BigInteger, "1"),
    kept("dirty", Boolean, "true"),  # changed behind our back; the code writes false
    Column("error", Text),  # why the row cannot be read; it is not planned until it is mended
    # Partial: a planner looks at armed jobs alone, whatever else is stored.
    Index(
        "jobs_due_idx",
        "next_run_at",
        sqlite_where=_ARMED,
        postgresql_where=_ARMED,
    ),
    Index("jobs_dirty_idx", "id", sqlite_where=sql("dirty"), postgresql_where=sql("dirty")),
    Index(
        "jobs_channel_idx",
        "trigger_channel",
        sqlite_where=sql("trigger_channel IS NOT NULL"),
        postgresql_where=sql("trigger_channel IS NOT NULL"),
    ),
    Index(
        "jobs_webhook_idx",
        "trigger_webhook",
        sqlite_where=sql("trigger_webhook IS NOT NULL"),
        postgresql_where=sql("trigger_webhook IS NOT NULL"),
    ),
    Index(
        "jobs_paused_idx",
        "paused_until",
        sqlite_where=sql("paused_until IS NOT NULL"),
        postgresql_where=sql("paused_until IS NOT NULL"),
    ),
    # UTC never changes its rules: nobody looks for the jobs that use it.
    Index(
        "jobs_zone_idx",
        "timezone",
        "id",
        sqlite_where=sql("timezone <> 'UTC'"),
        postgresql_where=sql("timezone <> 'UTC'"),
    ),
    # Runs change neither: who asks whether any job was changed looks at one end of it.
    Index("jobs_updated_idx", "updated_at", "revision"),
    # On PostgreSQL an index on the lock would cost each claim and settle its in-page (HOT) update.
    Index("jobs_lock_idx", "lock_acquired_at", sqlite_where=sql("lock_token IS NOT NULL")).ddl_if("sqlite"),
    # A run changes its job three times: pages that are half empty have room for it, and no index changes.
    postgresql_with={"fillfactor": "50", "autovacuum_vacuum_scale_factor": "0.05"},
)

SLOT: Final = ("job_id", "scheduled_for", "cause")

executions = Table(
    "executions",
    metadata,
    Column("id", Id, primary_key=True),
    kept("job_id", Id),
    kept("cause", Text),
    kept("scheduled_for", Instant),
    Column("available_at", Instant),
    kept("state", Text),
    kept("lane", SmallInteger, "2"),
    kept("number", BigInteger, "0"),
    Column("covers_from", Instant),
    Column("through_at", Instant),
    kept("skipped_count", BigInteger, "0"),
    Column("skip_reason", Text),
    Column("wait_reason", Text),
    Column("detail", Text),
    Column("triggered_by", Text),
    Column("config", Json),
    kept("attempt", Integer, "0"),
    kept("failures", Integer, "0"),
    kept("losses", Integer, "0"),
    Column("lease_token", Text),
    Column("lease_expires_at", Instant),
    Column("deadline_at", Instant),
    kept("remote", Boolean, "false"),
    Column("cancel_url", Text),
    Column("cancel_requested_at", Instant),
    Column("cancel_requested_by", Text),
    Column("instance_id", Text),
    Column("claimed_at", Instant),
    Column("started_at", Instant),
    Column("completed_at", Instant),
    Column("progress", Float),
    Column("progress_message", Text),
    Column("error", Text),
    Column("stack", Text),
    Column("result", Json),
    Column("trace_id", Text),
    kept("created_at", Instant),
    kept("road", SmallInteger, "1"),
    Column("enqueued_at", Instant),  # put on the streams, or pledged to be at `available_at`
    UniqueConstraint(*SLOT, name="executions_slot_key"),
    Index(
        "executions_claimable_idx",
        "road",
        "lane",
        "available_at",
        sqlite_where=_CLAIMABLE,
        postgresql_where=_CLAIMABLE,
    ),
    # The road is the same for all of it; without it SQLite prefers the index of all that is claimable.
    Index("executions_unfed_idx", "road", "available_at", sqlite_where=_UNFED, postgresql_where=_UNFED),
    Index(
        "executions_open_idx",
        "state",
        "job_id",
        "cause",
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    ),
    postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.05"},
)

attempts = Table(
    "attempts",
    metadata,
    Column("execution_id", Id, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    kept("outcome", Text),
    Column("started_at", Instant),
    kept("completed_at", Instant),
    Column("instance_id", Text),
    Column("error", Text),
    Column("stack", Text),
    Column("result", Json),
)

DEPENDS_ON: Final = "depends_on"
ON_SUCCESS_OF: Final = "on_success_of"

job_dependencies = Table(
    "job_dependencies",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("parent_id", Id, primary_key=True),
    Column("kind", String(20), primary_key=True),
    Index("job_dependencies_parent_idx", "parent_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Id, primary_key=True),
    kept("at", Instant),
    kept("actor", Text),
    kept("action", Text),
    kept("kind", Text),
    kept("subject_id", Text),
    Column("before", Json),
    Column("after", Json),
    Column("revision", BigInteger),  # that the change made, of subjects that have revisions
    Index("audit_subject_idx", "subject_id", "id"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, primary_key=True),
    kept("kind", Text),
    kept("payload", Json),
    kept("created_at", Instant),
    Column("available_at", Instant),  # None = delivered or given up
    kept("attempts", Integer, "0"),
    Column("done_at", Instant),
    Column("error", Text),
    Index(
        "outbox_open_idx",
        "available_at",
        sqlite_where=sql("available_at IS NOT NULL"),
        postgresql_where=sql("available_at IS NOT NULL"),
    ),
)

instances = Table(
    "instances",
    metadata,
    Column("id", Text, primary_key=True),
    kept("host", Text, "''"),
    kept("pid", Integer, "0"),
    kept("roles", Json, "'[]'"),
    kept("started_at", Instant),
    kept("heartbeat_at", Instant),
    kept("slots", Integer, "0"),
    kept("busy", Integer, "0"),
    kept("state", Text, "'running'"),
    kept("version", Text, "''"),
    kept("wanted", Text, "'running'"),  # what people want it to be: running or draining
    kept("leads", Boolean, "false"),
    kept("url", Text, "''"),
    kept("road", Text, "'database'"),  # the road of its version 2 work: streams, or database
)

leadership = Table(
    "leadership",
    metadata,
    Column("name", Text, primary_key=True),
    kept("term", BigInteger, "0"),  # grows with each election: the fence of every planning transaction
    Column("holder", Text),
    kept("host", Text, "''"),
    kept("pid", Integer, "0"),
    Column("elected_at", Instant),
    Column("expires_at", Instant),
)

breakers = Table(
    "breakers",
    metadata,
    Column("domain", Text, primary_key=True),
    kept("state", Text, "'closed'"),
    kept("failures", Integer, "0"),
    Column("opened_at", Instant),
    Column("probe_until", Instant),
    kept("trips", BigInteger, "0"),
    Column("last_error", Text),
    kept("updated_at", Instant),
)

locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text),
    kept("fence", BigInteger, "0"),  # grows with each owner
    Column("expires_at", Instant),
)

meta = Table("meta", metadata, Column("key", Text, primary_key=True), kept("value", Text))

# Written out, not bound: neither database proves with a parameter that a row is in a partial index. SQLite
# wants to find the very words of the index, which is why these are chains of OR and not IN.
PENDING: Final = sql("executions.state = 'pending'")
QUEUED: Final = sql("executions.state = 'queued'")
RUNNING: Final = sql("executions.state = 'running'")
WAITING: Final = sql("(executions.state = 'pending' OR executions.state = 'queued')")
OPEN: Final = sql(
    "(executions.state = 'pending' OR executions.state = 'queued' OR executions.state = 'running')"
)
CLAIMABLE: Final = sql(
    "(executions.state = 'pending' OR executions.state = 'queued') AND executions.available_at IS NOT NULL"
)
UNFED: Final = sql(f"{CLAIMABLE.text} AND executions.road = 2 AND executions.enqueued_at IS NULL")
# Where ids are known: in words that fit no partial index, all of which would be compared with all of them.
HAS_STATE: Final = func.coalesce(executions.c.state, "")
ARMED: Final = sql("jobs.next_run_at IS NOT NULL AND jobs.schedule_enabled AND NOT jobs.is_paused")
DIRTY: Final = sql("jobs.dirty")
HAS_CHANNEL: Final = sql("jobs.trigger_channel IS NOT NULL")
HAS_WEBHOOK: Final = sql("jobs.trigger_webhook IS NOT NULL")
ZONED: Final = sql("jobs.timezone <> 'UTC'")
CLEAN: Final = sql("NOT jobs.dirty AND jobs.error IS NULL")
