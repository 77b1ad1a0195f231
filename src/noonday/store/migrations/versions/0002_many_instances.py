"""Two roads, a leader with a term, circuit breakers and locks: what several instances share."""

from __future__ import annotations

from collections.abc import Callable

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, SmallInteger, Table, Text
from sqlalchemy import text as sql

from noonday.store.columns import Instant
from noonday.store.migrations import plain_sql_0002 as plain_sql

revision = "0002"
down_revision = "0001"

_CLAIMABLE = "(state = 'pending' OR state = 'queued') AND available_at IS NOT NULL"
_UNFED = f"{_CLAIMABLE} AND road = 2 AND enqueued_at IS NULL"

metadata = MetaData()

leadership = Table(
    "leadership",
    metadata,
    Column("name", Text, primary_key=True),
    Column("term", BigInteger, nullable=False, server_default=sql("0")),
    Column("holder", Text),
    Column("host", Text, nullable=False, server_default=sql("''")),
    Column("pid", Integer, nullable=False, server_default=sql("0")),
    Column("elected_at", Instant),
    Column("expires_at", Instant),
)

breakers = Table(
    "breakers",
    metadata,
    Column("domain", Text, primary_key=True),
    Column("state", Text, nullable=False, server_default=sql("'closed'")),
    Column("failures", Integer, nullable=False, server_default=sql("0")),
    Column("opened_at", Instant),
    Column("probe_until", Instant),
    Column("trips", BigInteger, nullable=False, server_default=sql("0")),
    Column("last_error", Text),
    Column("updated_at", Instant, nullable=False),
)

locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text),
    Column("fence", BigInteger, nullable=False, server_default=sql("0")),
    Column("expires_at", Instant),
)


def upgrade() -> None:
    op.add_column("executions", Column("road", SmallInteger, nullable=False, server_default=sql("1")))
    op.add_column("executions", Column("enqueued_at", Instant))
    op.drop_index("executions_claimable_idx", "executions")
    _index("executions_claimable_idx", ["road", "lane", "available_at"], _CLAIMABLE)
    _index("executions_unfed_idx", ["road", "available_at"], _UNFED)
    op.add_column("instances", Column("wanted", Text, nullable=False, server_default=sql("'running'")))
    op.add_column("instances", Column("leads", Boolean, nullable=False, server_default=sql("false")))
    op.add_column("instances", Column("url", Text, nullable=False, server_default=sql("''")))
    op.add_column("instances", Column("road", Text, nullable=False, server_default=sql("'database'")))
    some = sql("trigger_channel IS NOT NULL")
    op.create_index("jobs_channel_idx", "jobs", ["trigger_channel"], sqlite_where=some, postgresql_where=some)
    metadata.create_all(op.get_bind(), checkfirst=False)
    _plain(plain_sql.statements)


def downgrade() -> None:
    _plain(plain_sql.statements_back)
    metadata.drop_all(op.get_bind(), checkfirst=False)
    op.drop_index("jobs_channel_idx", "jobs")
    for name in ("road", "url", "leads", "wanted"):
        op.drop_column("instances", name)
    op.drop_index("executions_unfed_idx", "executions")
    op.drop_index("executions_claimable_idx", "executions")
    _index("executions_claimable_idx", ["lane", "available_at"], _CLAIMABLE)
    op.drop_column("executions", "enqueued_at")
    op.drop_column("executions", "road")


def _index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "executions", columns, sqlite_where=sql(where), postgresql_where=sql(where))


def _plain(statements: Callable[[str], tuple[str, ...]]) -> None:
    conn = op.get_bind()
    # Plain text: neither a per cent sign nor a colon in it is a parameter.
    plain = conn.execution_options(no_parameters=True)
    for statement in statements(conn.dialect.name):
        plain.exec_driver_sql(statement)
