"""The tables of the front door: keys, remembered answers, deliveries, services, events; and of the pages."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, SmallInteger, Table, Text

from noonday.store.columns import Id, Instant, Json
from noonday.store.tables import kept, metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    kept("name", Text),
    Column("prefix", Text, nullable=False, unique=True),  # shown, and what a key is found by
    kept("digest", Text),  # of the whole key: the key itself is shown once and kept nowhere
    kept("role", Text),
    Column("service", Text),  # of a key with the role service: whose jobs it may touch
    kept("created_at", Instant),
    kept("created_by", Text, "''"),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
    Column("revoked_by", Text),
)

replays = Table(
    "replays",
    metadata,
    Column("id", Text, primary_key=True),  # digest of caller, method, path and Idempotency-Key
    kept("fingerprint", Text),  # of what was asked: another body under the same key is refused
    Column("status", SmallInteger),  # None = the first call is still being answered
    Column("headers", Json),
    Column("body", Text),
    kept("created_at", Instant),
    kept("expires_at", Instant),
    Index("replays_expires_idx", "expires_at"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),  # as the sender named it
    kept("path", Text),
    kept("received_at", Instant),
    kept("started", Json, "'[]'"),  # [{"job_id": …, "execution_id": …}, …]
    Index("deliveries_received_idx", "received_at"),
)

services = Table(
    "services",
    metadata,
    Column("name", Text, primary_key=True),
    kept("url", Text),
    kept("description", Text, "''"),
    kept("created_at", Instant),
    kept("updated_at", Instant),
)

# What a service last said of its job. Where the job differs from it, somebody has changed the job since.
declarations = Table(
    "declarations",
    metadata,
    Column("job_id", Id, primary_key=True),
    kept("service", Text),
    kept("body", Json),
    kept("declared_at", Instant),
    Index("declarations_service_idx", "service"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    kept("at", Instant),
    kept("kind", Text),  # such as execution.ended
    Column("job_id", Id),
    Column("execution_id", Id),
    kept("payload", Json),
    sqlite_autoincrement=True,  # a number never comes again, even after everything was pruned
)

# A browser that is signed in; the cookie holds the text of which `id` is the digest.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    kept("name", Text),
    kept("role", Text),
    Column("service", Text),
    Column("key_id", Id),  # of one that signed in with an API key: it ends with the key
    kept("agent", Text, "''"),  # what the browser calls itself
    kept("created_at", Instant),
    kept("expires_at", Instant),
    Index("sessions_expires_idx", "expires_at"),
)

# What a running attempt writes, as it writes it; `place` and `line` count characters and line ends before it.
outputs = Table(
    "outputs",
    metadata,
    Column("execution_id", Id, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    kept("line", BigInteger, "0"),
    kept("at", Instant),
    kept("text", Text),
)

# What was due in each ten minutes and has settled; `skipped` counts instants, of which a row may be many.
tallies = Table(
    "tallies",
    metadata,
    Column("slot", Instant, primary_key=True),
    *(kept(name, BigInteger, "0") for name in ("completed", "failed", "cancelled", "skipped", "busy_ms")),
)

# Executions that had not settled when those made at their time were tallied.
stragglers = Table("stragglers", metadata, Column("execution_id", Id, primary_key=True))
