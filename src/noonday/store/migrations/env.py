"""What Alembic runs for each command: the connection is given by store/migrate.py."""

from __future__ import annotations

from alembic import context

from noonday.store import front_tables  # noqa: F401 - its tables belong to the same metadata
from noonday.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
