"""Browsers that are signed in, output as it is written, and pauses that end by themselves."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text
from sqlalchemy import text as sql

from noonday.store.columns import Id, Instant

revision = "0004"
down_revision = "0003"

metadata = MetaData()

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("service", Text),
    Column("key_id", Id),
    Column("agent", Text, nullable=False, server_default=sql("''")),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Index("sessions_expires_idx", "expires_at"),
)

outputs = Table(
    "outputs",
    metadata,
    Column("execution_id", Id, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    Column("line", BigInteger, nullable=False, server_default=sql("0")),
    Column("at", Instant, nullable=False),
    Column("text", Text, nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    op.add_column("jobs", Column("paused_until", Instant))
    some = sql("paused_until IS NOT NULL")
    op.create_index("jobs_paused_idx", "jobs", ["paused_until"], sqlite_where=some, postgresql_where=some)


def downgrade() -> None:
    op.drop_index("jobs_paused_idx", "jobs")
    op.drop_column("jobs", "paused_until")
    metadata.drop_all(op.get_bind(), checkfirst=False)
