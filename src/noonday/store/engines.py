"""How connections are made: the URL as people write it, and what each new connection is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, PoolProxiedConnection, QueuePool

from noonday.domain.errors import invalid
from noonday.store import shortcuts
from noonday.store.jsontext import dumps


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """With `synchronous` FULL an acknowledged commit on SQLite survives a power cut, with NORMAL a crash."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    busy_timeout_ms: int = 15_000
    readers: int = 3  # SQLite: threads that read beside the one that writes
    connections: int = 4  # PostgreSQL: threads, each with a connection
    idle_in_transaction_ms: int = 60_000
    lock_timeout_ms: int = 10_000  # PostgreSQL: a row that somebody holds for longer makes us try again later
    transaction_pooling: bool = False  # a pooler may give each transaction another session of PostgreSQL


# KiB of each connection to SQLite. The system keeps the file in memory too: more of it here is only memory.
_WRITING_CACHE, _READING_CACHE = 4096, 2048

# So that a peer that vanished is noticed within a minute, and not after the hours of the system's default.
KEEP_ALIVE = {
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # milliseconds, for what was sent and never acknowledged
}


def normalise_url(url: str) -> URL:
    """`sqlite:///path`, `postgres://…` and `postgresql://…`; on PostgreSQL the driver is psycopg 3."""
    try:
        made = make_url(url)
    except ArgumentError as exc:
        raise invalid("DATABASE_URL", url.rsplit("@", maxsplit=1)[-1], "is not a database URL") from exc
    match made.drivername:
        case "sqlite" | "sqlite+pysqlite":
            return made.set(drivername="sqlite")
        case "postgres" | "postgresql" | "postgresql+psycopg":
            return made.set(drivername="postgresql+psycopg")
        case other:
            raise invalid("DATABASE_URL", other, "is not supported; use sqlite:/// or postgresql://")


def in_memory(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and (url.database or ":memory:") == ":memory:"


def make_engine(
    url: URL, options: StoreOptions, *, connections: int = 1, reading: bool = False, pooled: bool = True
) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, options, connections=connections, reading=reading)
    pool: dict[str, Any] = {"poolclass": NullPool}
    if pooled:
        pool = {"pool_size": connections, "max_overflow": 0, "pool_use_lifo": True}  # a few warm ones
    connect: dict[str, Any] = {"application_name": "noonday", **KEEP_ALIVE, **url.query}
    if options.transaction_pooling:
        connect["prepare_threshold"] = None  # a prepared statement belongs to one session
    engine = create_engine(url.set(query={}), json_serializer=dumps, connect_args=connect, **pool)
    settings = {
        "timezone": "'UTC'",
        "idle_in_transaction_session_timeout": options.idle_in_transaction_ms,
        "jit": "off",  # a statement that is compiled first takes longer than it ever gains here
    }
    if pooled:  # a migration waits for its turn as long as it takes
        settings["lock_timeout"] = options.lock_timeout_ms
    tell = _tell_each_transaction if options.transaction_pooling else _tell_the_session
    event.listen(engine, "do_connect", _wired)
    tell(engine, settings)
    shortcuts.lay(engine)
    return engine


def _wired(dialect: Dialect, record: ConnectionPoolEntry, args: Any, named: dict[str, Any]) -> Any:
    from noonday.store.cursors import WiredConnection  # noqa: PLC0415 - 9 MB that SQLite does not need

    return WiredConnection.connect(*args, **named).prepared()


def _tell_the_session(engine: Engine, settings: Mapping[str, object]) -> None:
    """Each setting once, when the connection is made."""

    @event.listens_for(engine, "connect")
    def prepare(dbapi: Any, record: object) -> None:
        dbapi.autocommit = True
        for name, value in settings.items():
            dbapi.execute(f"SET {name} = {value}")
        dbapi.autocommit = False


def _tell_each_transaction(engine: Engine, settings: Mapping[str, object]) -> None:
    """No session is ours for longer than a transaction: the settings travel with BEGIN, in one message."""
    local = "; ".join(f"SET LOCAL {name} = {value}" for name, value in settings.items())

    @event.listens_for(engine, "connect")
    def prepare(dbapi: Any, record: object) -> None:
        dbapi.autocommit = True  # the driver's own BEGIN is off: ours says more

    @event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        reading = conn.get_execution_options().get("postgresql_readonly", False)
        conn.exec_driver_sql(f"BEGIN{' READ ONLY' if reading else ''}; {local}")


def _sqlite_engine(url: URL, options: StoreOptions, *, connections: int, reading: bool) -> Engine:
    if not in_memory(url):
        Path(str(url.database)).expanduser().parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        connect_args={"check_same_thread": False, "cached_statements": 512, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(dbapi: Any, record: object) -> None:
        dbapi.execute(f"PRAGMA busy_timeout = {options.busy_timeout_ms}")
        dbapi.execute("PRAGMA journal_mode = WAL")
        dbapi.execute(f"PRAGMA synchronous = {options.synchronous}")
        dbapi.execute("PRAGMA foreign_keys = ON")
        # A reader may have to sort a million jobs for a page: not in memory.
        dbapi.execute(f"PRAGMA temp_store = {'FILE' if reading else 'MEMORY'}")
        dbapi.execute(f"PRAGMA cache_size = -{_READING_CACHE if reading else _WRITING_CACHE}")
        if reading:
            dbapi.execute("PRAGMA query_only = ON")

    # The driver's own idea of transactions is off (isolation_level None): a writer takes the lock at once,
    # so that it never finds out half-way that what it read is out of date.
    def begin(dbapi_connection: PoolProxiedConnection) -> None:
        dbapi_connection.cursor().execute("BEGIN" if reading else "BEGIN IMMEDIATE")

    engine.dialect.do_begin = begin  # type: ignore[method-assign] # an event would cost each statement
    return engine
