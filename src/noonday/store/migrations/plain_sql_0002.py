"""What plain SQL means for two engines: a job whose version changes takes what waits with it, at once.

Belongs to migration 0002 and is never changed; a later step brings its own.
"""

from __future__ import annotations

from noonday.store.migrations import plain_sql_0001 as before

FINISHED = "engine_finished_at"  # a key of `meta`: from then on there is version 2 alone

# A change of the version alone needs no new arming: the times stay, only the road differs.
DEFINING = tuple(name for name in before.DEFINING if name != "scheduler_version")
_COLUMNS = ", ".join(DEFINING)
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
_ROAD = "CASE NEW.scheduler_version WHEN 2 THEN 2 ELSE 1 END"
# What runs ends on the road that it came by.
_WAITING_GOES_ALONG = f"""UPDATE executions SET road = {_ROAD}, enqueued_at = NULL
            WHERE job_id = NEW.id AND state IN ('pending', 'queued') AND road <> {_ROAD}"""
_TOO_LATE = f"NEW.scheduler_version <> 2 AND EXISTS (SELECT 1 FROM meta WHERE key = '{FINISHED}')"

SQLITE = (
    "DROP TRIGGER jobs_changed",
    f"""CREATE TRIGGER jobs_changed AFTER UPDATE OF {_COLUMNS} ON jobs
    WHEN NEW.revision = OLD.revision AND ({" OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in DEFINING)})
    BEGIN
        UPDATE jobs SET dirty = 1, revision = OLD.revision + 1, updated_at = {_SQLITE_NOW} WHERE id = NEW.id;
    END""",
    f"""CREATE TRIGGER jobs_moved AFTER UPDATE OF scheduler_version ON jobs
    WHEN OLD.scheduler_version IS NOT NEW.scheduler_version
    BEGIN
        {_WAITING_GOES_ALONG};
        UPDATE jobs SET dirty = 1 WHERE id = NEW.id AND NEW.revision = OLD.revision AND {_TOO_LATE};
        UPDATE jobs SET revision = revision + 1, updated_at = {_SQLITE_NOW}
            WHERE id = NEW.id AND revision = OLD.revision;
    END""",
)
_FORGET = f"DELETE FROM meta WHERE key = '{FINISHED}'"
SQLITE_BACK = ("DROP TRIGGER jobs_moved", "DROP TRIGGER jobs_changed", before.SQLITE_TRIGGERS[0], _FORGET)

_POSTGRES_CHANGED = f"""CREATE TRIGGER jobs_changed BEFORE UPDATE OF {_COLUMNS} ON jobs FOR EACH ROW
    WHEN (NEW.revision = OLD.revision AND
          ({", ".join(f"NEW.{name}" for name in DEFINING)}) IS DISTINCT FROM
          ({", ".join(f"OLD.{name}" for name in DEFINING)}))
    EXECUTE FUNCTION noonday_job_changed()"""

POSTGRES = (
    "DROP TRIGGER jobs_changed ON jobs",
    _POSTGRES_CHANGED,
    f"""CREATE FUNCTION noonday_job_moved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        {_WAITING_GOES_ALONG};
        IF NEW.revision = OLD.revision THEN
            NEW.revision := OLD.revision + 1;
            NEW.updated_at := now();
            NEW.dirty := NEW.dirty OR ({_TOO_LATE});
        END IF;
        PERFORM pg_notify('noonday', 'plain jobs work');
        RETURN NEW;
    END $$""",
    # By the order of names after jobs_changed, which raises the revision first where both fire.
    """CREATE TRIGGER jobs_moved BEFORE UPDATE OF scheduler_version ON jobs FOR EACH ROW
    WHEN (NEW.scheduler_version IS DISTINCT FROM OLD.scheduler_version)
    EXECUTE FUNCTION noonday_job_moved()""",
)
POSTGRES_BACK = (
    "DROP TRIGGER jobs_moved ON jobs",
    "DROP FUNCTION noonday_job_moved()",
    "DROP TRIGGER jobs_changed ON jobs",
    before.POSTGRES_TRIGGERS[1],
    "ALTER TABLE jobs ALTER COLUMN scheduler_version SET DEFAULT 1",
    _FORGET,
)


def statements(dialect: str) -> tuple[str, ...]:
    return SQLITE if dialect == "sqlite" else POSTGRES


def statements_back(dialect: str) -> tuple[str, ...]:
    return SQLITE_BACK if dialect == "sqlite" else POSTGRES_BACK
