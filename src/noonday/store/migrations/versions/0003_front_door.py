"""Keys, remembered answers, deliveries, services and their declarations, events, revisions in the audit."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy import text as sql

from noonday.store.columns import Id, Instant, Json

revision = "0003"
down_revision = "0002"

metadata = MetaData()

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("service", Text),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False, server_default=sql("''")),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
    Column("revoked_by", Text),
    UniqueConstraint("prefix", name="api_keys_prefix_key"),
)

replays = Table(
    "replays",
    metadata,
    Column("id", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("status", SmallInteger),
    Column("headers", Json),
    Column("body", Text),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Index("replays_expires_idx", "expires_at"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("path", Text, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("started", Json, nullable=False, server_default=sql("'[]'")),
    Index("deliveries_received_idx", "received_at"),
)

services = Table(
    "services",
    metadata,
    Column("name", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=sql("''")),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

declarations = Table(
    "declarations",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("service", Text, nullable=False),
    Column("body", Json, nullable=False),
    Column("declared_at", Instant, nullable=False),
    Index("declarations_service_idx", "service"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job_id", Id),
    Column("execution_id", Id),
    Column("payload", Json, nullable=False),
    sqlite_autoincrement=True,
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    op.add_column("audit", Column("revision", BigInteger))
    some = sql("trigger_webhook IS NOT NULL")
    op.create_index("jobs_webhook_idx", "jobs", ["trigger_webhook"], sqlite_where=some, postgresql_where=some)


def downgrade() -> None:
    op.drop_index("jobs_webhook_idx", "jobs")
    op.drop_column("audit", "revision")
    metadata.drop_all(op.get_bind(), checkfirst=False)
