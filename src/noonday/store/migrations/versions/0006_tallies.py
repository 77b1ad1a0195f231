"""Tallies of what was due in each ten minutes, and the executions that were late for them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, MetaData, Table
from sqlalchemy import text as sql

from noonday.store.columns import Id, Instant

revision = "0006"
down_revision = "0005"

metadata = MetaData()

tallies = Table(
    "tallies",
    metadata,
    Column("slot", Instant, primary_key=True),
    *(
        Column(name, BigInteger, nullable=False, server_default=sql("0"))
        for name in ("completed", "failed", "cancelled", "skipped", "busy_ms")
    ),
)

stragglers = Table("stragglers", metadata, Column("execution_id", Id, primary_key=True))


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    metadata.drop_all(op.get_bind(), checkfirst=False)
    op.execute(sql("DELETE FROM meta WHERE key = 'tallied'"))
