"""Room in the pages of jobs: a job that runs is changed where it stands, and no index with it."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    _fill(50)


def downgrade() -> None:
    _fill(80)


def _fill(percent: int) -> None:
    """For pages yet to be written: nothing is moved now."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE jobs SET (fillfactor = {percent})")
