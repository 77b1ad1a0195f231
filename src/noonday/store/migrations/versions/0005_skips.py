"""Runs that people skip before they are due."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column

from noonday.store.columns import Instant

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("jobs", Column("skipped_through", Instant))


def downgrade() -> None:
    op.drop_column("jobs", "skipped_through")
