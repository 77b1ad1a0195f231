"""What lets people work with plain SQL: triggers that notice changes, and views with known names.

Belongs to migration 0001 and is never changed; a later step brings its own.
"""

from __future__ import annotations

# A change of one of these by plain SQL is noticed. The code itself always raises the revision with them.
DEFINING = (
    "name",
    "description",
    "tags",
    "source_id",
    "url",
    "target",
    "schedule_type",
    "cron_expression",
    "interval_minutes",
    "interval_type",
    "after_completion",
    "schedule_time",
    "run_at",
    "frequency",
    "time_config",
    "timezone",
    "anchor_at",
    "start_at",
    "end_at",
    "max_runs",
    "jitter_seconds",
    "windows",
    "calendar",
    "outside",
    "priority",
    "timeout_seconds",
    "misfire_grace_seconds",
    "coalesce",
    "catch_up",
    "max_instances",
    "overlap",
    "max_retries",
    "retry_backoff_seconds",
    "retry_jitter",
    "on_lost",
    "trigger_webhook",
    "trigger_channel",
    "retention_runs",
    "retention_days",
    "depends_on",
    "on_success_of",
    "scheduler_version",
    "config",
    "metadata",
    "schedule_enabled",
    "is_paused",
)
_COLUMNS = ", ".join(DEFINING)
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
_ENDED = """state = 'cancelled', detail = 'the job was removed', available_at = NULL, wait_reason = NULL,
    lease_token = NULL, lease_expires_at = NULL, deadline_at = NULL"""

SQLITE_TRIGGERS = (
    f"""CREATE TRIGGER jobs_changed AFTER UPDATE OF {_COLUMNS} ON jobs
    WHEN NEW.revision = OLD.revision AND ({" OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in DEFINING)})
    BEGIN
        UPDATE jobs SET dirty = 1, revision = revision + 1, updated_at = {_SQLITE_NOW} WHERE id = NEW.id;
    END""",
    f"""CREATE TRIGGER jobs_removed AFTER DELETE ON jobs
    BEGIN
        UPDATE executions SET {_ENDED}, completed_at = {_SQLITE_NOW}
            WHERE job_id = OLD.id AND state IN ('pending', 'queued', 'running');
        DELETE FROM job_dependencies WHERE job_id = OLD.id;
        INSERT INTO meta (key, value) VALUES ('removed:' || OLD.id, {_SQLITE_NOW}) ON CONFLICT DO NOTHING;
    END""",
)

POSTGRES_TRIGGERS = (
    """CREATE FUNCTION noonday_job_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.dirty := true;
        NEW.revision := OLD.revision + 1;
        NEW.updated_at := now();
        PERFORM pg_notify('noonday', 'plain jobs');
        RETURN NEW;
    END $$""",
    f"""CREATE TRIGGER jobs_changed BEFORE UPDATE OF {_COLUMNS} ON jobs FOR EACH ROW
    WHEN (NEW.revision = OLD.revision AND
          ({", ".join(f"NEW.{name}" for name in DEFINING)}) IS DISTINCT FROM
          ({", ".join(f"OLD.{name}" for name in DEFINING)}))
    EXECUTE FUNCTION noonday_job_changed()""",
    """CREATE FUNCTION noonday_job_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_notify('noonday', 'plain jobs');
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.dirty)
    EXECUTE FUNCTION noonday_job_inserted()""",
    f"""CREATE FUNCTION noonday_job_removed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE executions SET {_ENDED}, completed_at = now()
            WHERE job_id = OLD.id AND state IN ('pending', 'queued', 'running');
        DELETE FROM job_dependencies WHERE job_id = OLD.id;
        INSERT INTO meta (key, value) VALUES ('removed:' || OLD.id, now()::text) ON CONFLICT DO NOTHING;
        PERFORM pg_notify('noonday', 'plain jobs cancel');
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER jobs_removed AFTER DELETE ON jobs FOR EACH ROW
    EXECUTE FUNCTION noonday_job_removed()""",
)
# SQLite's views are read-only by themselves.
POSTGRES_READ_ONLY = """CREATE FUNCTION noonday_read_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% is read-only', TG_TABLE_NAME;
    END $$"""
POSTGRES_FUNCTIONS = (
    "noonday_job_changed",
    "noonday_job_inserted",
    "noonday_job_removed",
    "noonday_read_only",
)


def statements(dialect: str) -> list[str]:
    """Triggers and views, in the order in which they are made."""
    made = list(SQLITE_TRIGGERS if dialect == "sqlite" else (*POSTGRES_TRIGGERS, POSTGRES_READ_ONLY))
    for name, query in views(dialect).items():
        made.append(f"CREATE VIEW {name} AS {query}")
        if dialect == "postgresql":
            made.append(
                f"CREATE TRIGGER {name}_read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON {name} "
                "FOR EACH ROW EXECUTE FUNCTION noonday_read_only()"
            )
    return made


def _number(name: str, dialect: str, kind: str = "bigint", column: str = "e.result") -> str:
    path = name.split(".")
    if dialect == "sqlite":
        return f"json_extract({column}, '$.{name}')"
    return f"({column} #>> '{{{','.join(path)}}}')::{kind}"


def _milliseconds(dialect: str) -> str:
    if dialect == "sqlite":
        span = "julianday(e.completed_at) - julianday(e.started_at)"
        return f"CAST(round(({span}) * 86400000) AS INTEGER)"
    return "round(extract(epoch FROM e.completed_at - e.started_at) * 1000)::bigint"


def _text(name: str, dialect: str, column: str) -> str:
    if dialect == "sqlite":
        return f"json_extract({column}, '$.{name}')"
    return f"({column} ->> '{name}')"


def views(dialect: str) -> dict[str, str]:
    """Name and statement of each view."""
    duration = _milliseconds(dialect)
    empty = "'{}'" if dialect == "sqlite" else "'{}'::jsonb"
    metadata = "json_extract(e.result, '$.metadata')" if dialect == "sqlite" else "(e.result -> 'metadata')"
    cron = (
        "json_object('cron_expression', cron_expression)"
        if dialect == "sqlite"
        else "jsonb_build_object('cron_expression', cron_expression)"
    )

    def number(name: str, kind: str = "bigint") -> str:
        return _number(name, dialect, kind)

    def runs(states: str) -> str:
        return f"(SELECT count(*) FROM executions e WHERE e.job_id = j.id AND e.state IN ({states}))"

    return {
        "job_executions": f"""SELECT e.id, e.id AS execution_id, e.job_id, e.job_id AS schedule_id,
            e.number AS execution_number, e.state AS status, e.scheduled_for, e.started_at, e.completed_at,
            {duration} AS duration_ms, {duration} / 1000.0 AS duration_seconds,
            {number("items_processed")} AS items_crawled, {number("items_succeeded")} AS items_indexed,
            e.error AS error_message, e.stack AS stack_trace,
            {number("usage.cpu_time_ms")} AS cpu_time_ms,
            {number("usage.memory_peak_mb", "double precision")} AS memory_peak_mb,
            e.failures AS retry_attempt, coalesce({metadata}, {empty}) AS metadata,
            e.cause AS triggered_by, e.skip_reason, e.created_at
        FROM executions e""",
        "schedules": f"""SELECT id AS schedule_id, source_id AS domain_config_id,
            coalesce(name, url) AS domain, NULL AS profile_id,
            coalesce(frequency, schedule_type, 'interval') AS frequency,
            coalesce(time_config, CASE WHEN cron_expression IS NOT NULL THEN {cron} ELSE {empty} END)
                AS time_config,
            schedule_enabled AND NOT is_paused AS enabled, next_run_at AS next_run, last_run_at AS last_run,
            last_status, created_at, updated_at
        FROM jobs""",
        "job_schedules": f"""SELECT coalesce(j.name, CAST(j.id AS TEXT)) AS job_name,
            coalesce({_text("display_name", dialect, "j.metadata")}, j.name) AS display_name,
            j.description, j.cron_expression, j.schedule_enabled AS enabled,
            {_text("job_type", dialect, "j.metadata")} AS job_type,
            {_text("service", dialect, "j.target")} AS service,
            {_text("endpoint", dialect, "j.target")} AS endpoint,
            j.config, j.last_run_at, j.next_run_at,
            {runs("'completed', 'failed', 'cancelled'")} AS total_runs,
            {runs("'completed'")} AS successful_runs, {runs("'failed'")} AS failed_runs,
            j.created_at, j.updated_at
        FROM jobs j""",
        "scheduled_jobs": f"""SELECT e.id, coalesce(j.name, CAST(e.job_id AS TEXT)) AS job_name,
            e.state AS status, e.started_at, e.completed_at, {duration} AS duration_ms,
            {number("items_processed")} AS items_processed, {number("items_succeeded")} AS items_succeeded,
            {number("items_failed")} AS items_failed,
            e.error AS error_message, coalesce({metadata}, {empty}) AS metadata,
            CASE e.cause WHEN 'schedule' THEN 'scheduler' ELSE e.cause END AS triggered_by,
            e.triggered_by AS triggered_by_user, e.created_at
        FROM executions e LEFT JOIN jobs j ON j.id = e.job_id
        WHERE e.state NOT IN ('skipped')""",
    }
