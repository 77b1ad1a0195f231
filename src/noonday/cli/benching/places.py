"""Where `noonday bench` measures: a database of its own on the user's server, gone when it is done."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noonday.cli.database import described, reached
from noonday.cli.errors import Hint
from noonday.domain.errors import NotAllowed, RoadDown, Unavailable, invalid
from noonday.redis_link import RedisLink
from noonday.store import migrate
from noonday.store.engines import StoreOptions, in_memory, make_engine, normalise_url

__all__ = ["Place", "own_database", "own_road"]

_DENIED = "42501"  # insufficient_privilege


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A migrated database without jobs, and a Redis if work is to take the streams."""

    url: str
    words: str  # for people
    redis: str | None = None
    prefix: str = "noonday-bench"


@contextmanager
def own_database(given: str | None) -> Iterator[Place]:
    """On the server, or beside the file, that is named; without one, in the system's folder for such files.

    Nothing that is there already is touched.
    """
    with _own(given) as place:
        with reached(place.url):
            migrate.upgrade(place.url)
        yield place


@contextmanager
def _own(given: str | None) -> Iterator[Place]:
    if given is None:
        with tempfile.TemporaryDirectory(prefix="noonday-bench-") as folder:
            yield Place(url=f"sqlite:///{folder}/bench.db", words=f"a SQLite file of its own in {folder}")
        return
    url = normalise_url(given)
    if in_memory(url):
        raise invalid("--database", given, "would measure no disk: name a file, or leave it out")
    if url.get_backend_name() == "sqlite":
        yield from _beside(Path(str(url.database)).expanduser())
    else:
        yield from _on_server(given)


def _beside(path: Path) -> Iterator[Place]:
    """On the same disk as the file that is named."""
    if not path.parent.is_dir():
        raise Unavailable(f"SQLite {path} cannot be used: there is no folder {path.parent}")
    try:
        folder = tempfile.TemporaryDirectory(prefix=".noonday-bench-", dir=path.parent)
    except OSError as exc:
        raise Unavailable(f"SQLite {path} cannot be used: {exc}") from exc
    with folder:
        yield Place(url=f"sqlite:///{folder.name}/bench.db", words=f"a SQLite file of its own beside {path}")


def _on_server(given: str) -> Iterator[Place]:
    """A database, or a schema where the role may make no database; who may neither cannot measure."""
    name = f"noonday_bench_{os.urandom(6).hex()}"
    words = f"PostgreSQL on {normalise_url(given).host or 'the local socket'}, in {{}} of its own"
    url = normalise_url(given)
    with _gone_afterwards(given, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"):
        if _may(given, f"CREATE DATABASE {name} TEMPLATE template0"):
            yield _place(url.set(database=name), words.format("a database"))
            return
    with _gone_afterwards(given, f"DROP SCHEMA IF EXISTS {name} CASCADE"):
        if _may(given, f"CREATE SCHEMA {name}"):
            options = f"{url.query.get('options', '')} -c search_path={name}".strip()
            yield _place(url.update_query_dict({"options": options}), words.format("a schema"))
            return
    raise Hint(
        NotAllowed(f"{described(given)}: this role may create neither a database nor a schema to measure in"),
        "GRANT CREATE ON DATABASE … TO …, or name another role in --database",
    )


def _place(url: Any, words: str) -> Place:
    return Place(url=url.render_as_string(hide_password=False), words=words)


@contextmanager
def _gone_afterwards(url: str, statement: str) -> Iterator[None]:
    """Also if the making of it was interrupted half-way."""
    try:
        yield
    except Unavailable:
        with suppress(Unavailable):  # the first thing that went wrong is the one to be told
            _tell(url, statement)
        raise
    except BaseException:
        _tell(url, statement)
        raise
    _tell(url, statement)


def _may(url: str, statement: str) -> bool:
    """Do it; False where the role has no right to."""
    try:
        _tell(url, statement)
    except Unavailable as exc:
        if getattr(getattr(exc.__cause__, "orig", None), "sqlstate", None) == _DENIED:
            return False
        raise
    return True


def _tell(url: str, statement: str) -> None:
    engine = make_engine(normalise_url(url), StoreOptions(), pooled=False)
    try:
        with reached(url), engine.connect() as conn:
            conn.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(statement)
    finally:
        engine.dispose()


@asynccontextmanager
async def own_road(url: str) -> AsyncIterator[str]:
    """A prefix for streams and keys in Redis that nobody else uses; all of them are removed in the end."""
    prefix = f"noonday-bench-{os.urandom(6).hex()}"
    link = RedisLink(url)
    try:
        await link.call("PING")
        yield prefix
    finally:
        with suppress(RoadDown):
            await asyncio.shield(_forget(link, prefix))
        await link.close()


async def _forget(link: RedisLink, prefix: str) -> None:
    cursor = "0"
    while True:
        cursor, found = await link.call("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", 1000)
        if found:
            await link.call("UNLINK", *found)
        if cursor == "0":
            return
