"""Time zones in use, found without a look at every job."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text as sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    some = sql("timezone <> 'UTC'")
    columns = ["timezone", "id"]
    op.create_index("jobs_zone_idx", "jobs", columns, sqlite_where=some, postgresql_where=some)


def downgrade() -> None:
    op.drop_index("jobs_zone_idx", "jobs")
