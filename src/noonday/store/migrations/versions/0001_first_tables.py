"""Jobs, executions, attempts and what stands beside them."""

from __future__ import annotations

from alembic import op

from noonday.store.migrations import plain_sql_0001 as plain_sql
from noonday.store.migrations.tables_0001 import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    conn = op.get_bind()
    metadata.create_all(conn, checkfirst=False)
    # Plain text: neither a per cent sign nor a colon in it is a parameter.
    plain = conn.execution_options(no_parameters=True)
    for statement in plain_sql.statements(conn.dialect.name):
        plain.exec_driver_sql(statement)


def downgrade() -> None:
    conn = op.get_bind()
    for name in plain_sql.views(conn.dialect.name):
        conn.exec_driver_sql(f"DROP VIEW {name}")
    metadata.drop_all(conn, checkfirst=False)
    if conn.dialect.name == "postgresql":
        for function in plain_sql.POSTGRES_FUNCTIONS:
            conn.exec_driver_sql(f"DROP FUNCTION {function}()")
