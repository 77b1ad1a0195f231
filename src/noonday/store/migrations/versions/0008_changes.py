"""Whether a job was changed, told without a look at every job."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_index("jobs_updated_idx", "jobs", ["updated_at", "revision"])


def downgrade() -> None:
    op.drop_index("jobs_updated_idx", "jobs")
