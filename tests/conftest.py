"""Databases for tests: a fresh SQLite file for each, or a PostgreSQL database that is empty again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from noonday.store import migrate
from noonday.store.database import Database
from tests.databases import Pool, still_connected
from tests.pgbouncer import start_pgbouncer
from tests.servers import NoServer, Server, start_postgres, start_redis

_serial = count(1)


def _served(start: Callable[[], Server]) -> Iterator[Server]:
    """A missing server is a failure: tests that silently do not run prove nothing."""
    try:
        server = start()
    except NoServer as exc:
        if os.environ.get("NOONDAY_TEST_SKIP_SERVERS") == "1" and not os.environ.get("CI"):
            pytest.skip(str(exc))
        pytest.fail(str(exc), pytrace=False)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    yield from _served(start_postgres)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    yield from _served(start_redis)


@pytest.fixture(scope="session")
def redis_url(redis_server: Server) -> str:
    return redis_server.url


def _admin(server: Server, statement: str, *names: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _named(server: Server, name: str) -> str:
    base, _, rest = server.url.rpartition("/")
    query = rest.partition("?")[2]
    return f"{base}/{name}" + (f"?{query}" if query else "")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Server) -> Iterator[str]:
    name = f"noonday_template_{os.getpid()}"
    _admin(postgres_server, "DROP DATABASE IF EXISTS {}", name)
    _admin(postgres_server, "CREATE DATABASE {}", name)
    migrate.upgrade(_named(postgres_server, name))
    yield name
    _admin(postgres_server, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


@pytest.fixture(scope="session")
def postgres_pool(postgres_server: Server, postgres_template: str) -> Iterator[Pool]:
    def create() -> str:
        name = f"noonday_{os.getpid()}_{next(_serial)}"
        _admin(postgres_server, "CREATE DATABASE {} TEMPLATE {}", name, postgres_template)
        return _named(postgres_server, name)

    pool = Pool(create, partial(_drop, postgres_server))
    yield pool
    pool.close()


def _drop(server: Server, url: str) -> None:
    _admin(server, "DROP DATABASE {} WITH (FORCE)", url.rpartition("/")[2].partition("?")[0])


@pytest.fixture
def postgres_url(postgres_pool: Pool) -> Iterator[str]:
    """A migrated, empty PostgreSQL database; fails if somebody leaves a connection open."""
    yield postgres_pool.take()
    left = postgres_pool.give_back()
    assert not left, f"connections left open: {left}"


@pytest.fixture
def empty_postgres_url(postgres_server: Server) -> Iterator[str]:
    """Without any table, and for one test alone."""
    name = f"noonday_{os.getpid()}_{next(_serial)}"
    _admin(postgres_server, "CREATE DATABASE {}", name)
    url = _named(postgres_server, name)
    yield url
    left = still_connected(url)
    _drop(postgres_server, url)
    assert not left, f"connections left open: {left}"


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Server]:
    """A server that the tests of one module may stop and kill."""
    yield from _served(partial(start_postgres, durable=True, own=True))


@pytest.fixture
def pooler() -> Iterator[Callable[[str], str]]:
    """Puts a PgBouncer in transaction mode before a database, with two connections to it; the URL there."""
    with ExitStack() as exits:
        yield lambda url: exits.enter_context(contextmanager(_served)(partial(start_pgbouncer, url))).url


@pytest.fixture
def pooled_url(postgres_url: str, pooler: Callable[[str], str]) -> str:
    return pooler(postgres_url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "noonday.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "noonday.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgres"])
def db_url(request: pytest.FixtureRequest) -> str:
    """A migrated database, once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def db(db_url: str) -> Iterator[Database]:
    made = Database(db_url)
    yield made
    made.close_now()


@pytest.fixture
def sqlite_db(sqlite_url: str) -> Iterator[Database]:
    made = Database(sqlite_url)
    yield made
    made.close_now()


@pytest.fixture
def postgres_db(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.close_now()


_first_trouble: list[str] = []


def pytest_internalerror(excrepr: object) -> None:
    _first_trouble.append(str(excrepr))


def pytest_unconfigure() -> None:
    """When a run breaks down, later errors bury the first one, which tells why: it is said once more."""
    if _first_trouble:
        print("\nthe first error of the run itself:", *_first_trouble[0].splitlines()[-12:], sep="\n")
