"""`noonday bench`: what it measures, what it leaves behind, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis as redis_py
from psycopg import sql

from noonday.cli.benching import measures
from noonday.cli.benching.stalls import Stalls, watched
from tests.cli.terminal import Terminal
from tests.servers import Server

TINY = ("--count", "30", "--rate", "20", "--seconds", "1", "--slots", "4")
_SERIAL = iter(range(1000))


def databases(server: Server) -> set[str]:
    with psycopg.connect(server.url, autocommit=True) as conn:
        return {name for (name,) in conn.execute("SELECT datname FROM pg_database").fetchall()}


def schemas(url: str) -> set[str]:
    with psycopg.connect(url, autocommit=True) as conn:
        return {name for (name,) in conn.execute("SELECT nspname FROM pg_namespace").fetchall()}


@pytest.fixture
def role(postgres_server: Server, postgres_url: str) -> Iterator[str]:
    """A role that may create no database, and nothing in this one."""
    name = f"bench_{os.getpid()}_{next(_SERIAL)}"
    with psycopg.connect(postgres_server.url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        database = sql.Identifier(postgres_url.rpartition("/")[2])
        conn.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM {}").format(database, sql.Identifier(name)))
        conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_it_measures_a_temporary_file_and_removes_it(
    cli: Terminal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    answer = cli("bench", *TINY, "--json")
    assert answer.code == 0, answer.err
    assert not answer.err
    found = answer.json
    assert set(found) == {
        "database",
        "road",
        "slots",
        "commit",
        "drain",
        "steady",
        "burst",
        "peak_memory_mb",
    }
    assert found["road"] == "database"
    assert found["drain"]["runs"] == 30
    assert found["burst"]["runs"] == 30
    assert found["steady"]["due"] == 20
    assert found["steady"]["fired"] == 20
    assert found["steady"]["early"] == 0
    assert 0 < found["commit"]["median_ms"] <= found["commit"]["p99_ms"]
    assert 0 < found["burst"]["last_started_s"] <= found["burst"]["durable_s"]
    assert list(temporary.iterdir()) == []
    assert not (folder / ".noonday").exists()


def test_it_measures_beside_a_file_and_does_not_touch_it(cli: Terminal, folder: Path) -> None:
    (folder / "mine.db").write_text("whatever is in here")
    answer = cli("bench", *TINY, "--database", "sqlite:///mine.db")
    assert answer.code == 0, answer.err
    assert "beside mine.db" in answer.out
    for words in ("one commit", "drain", "late at 20/s", "burst of 30", "20 of 20, none started early"):
        assert words in answer.out
    assert [path.name for path in folder.iterdir()] == ["mine.db"]
    assert (folder / "mine.db").read_text() == "whatever is in here"


def test_it_has_a_database_of_its_own_on_postgresql(
    cli: Terminal, postgres_server: Server, postgres_url: str
) -> None:
    before = databases(postgres_server)
    answer = cli("bench", *TINY, "--db", postgres_url)
    assert answer.code == 0, answer.err
    assert "in a database of its own" in answer.out
    assert databases(postgres_server) == before
    with psycopg.connect(postgres_url) as conn:
        assert conn.execute("SELECT count(*) FROM jobs").fetchone() == (0,)


def test_it_takes_the_streams_and_leaves_no_key(
    cli: Terminal, postgres_server: Server, postgres_url: str, redis_url: str
) -> None:
    before = databases(postgres_server)
    with redis_py.Redis.from_url(redis_url) as client:
        client.set("mine", "1")
        keys = set(client.scan_iter("*"))
        answer = cli("bench", *TINY, "--db", postgres_url, "--redis", redis_url, "--json")
        assert answer.code == 0, answer.err
        assert answer.json["road"] == "streams"
        assert answer.json["steady"]["fired"] == 20
        assert set(client.scan_iter("*")) == keys
        client.delete("mine")
    assert databases(postgres_server) == before


def test_it_makes_do_with_a_schema(
    cli: Terminal, postgres_server: Server, postgres_url: str, role: str
) -> None:
    database = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_server.url, autocommit=True) as conn:
        grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
        conn.execute(grant.format(sql.Identifier(database), sql.Identifier(role)))
    before = schemas(postgres_url)
    answer = cli("bench", *TINY, "--db", postgres_url.replace("postgres@", f"{role}@"))
    assert answer.code == 0, answer.err
    assert "in a schema of its own" in answer.out
    assert schemas(postgres_url) == before


def test_it_says_when_it_may_create_nothing(
    cli: Terminal, postgres_server: Server, postgres_url: str, role: str
) -> None:
    before = databases(postgres_server)
    answer = cli("bench", *TINY, "--db", postgres_url.replace("postgres@", f"{role}@"))
    assert answer.code == 5
    assert "may create neither a database nor a schema" in answer.err
    assert "hint: GRANT CREATE" in answer.err
    assert not answer.out
    assert databases(postgres_server) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--db", "postgresql://me:hunter2@127.0.0.1:1/jobs"),
            "noonday: PostgreSQL jobs on 127.0.0.1 cannot be used",
        ),
        (("--db", "sqlite:////nowhere/at/all/jobs.db"), "there is no folder /nowhere/at/all"),
        (("--redis", "redis://127.0.0.1:1/0"), "noonday: Redis cannot be used"),
    ],
    ids=["postgresql", "folder", "redis"],
)
def test_it_says_in_one_line_what_cannot_be_reached(cli: Terminal, words: tuple[str, ...], said: str) -> None:
    answer = cli("bench", *TINY, *words)
    assert answer.code == 6
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert "hunter2" not in answer.err
    assert not answer.out


@pytest.mark.parametrize(
    "words",
    [("--count", "0"), ("--rate", "-1"), ("--seconds", "0"), ("--slots", "0"), ("--db", "sqlite://")],
    ids=" ".join,
)
def test_it_refuses_what_cannot_be_measured(cli: Terminal, words: tuple[str, ...]) -> None:
    answer = cli("bench", *words)
    assert answer.code == 2
    assert not answer.out


@pytest.mark.parametrize("part", ["commit", "drain", "steady", "burst"])
def test_it_cleans_up_when_it_is_interrupted(
    cli: Terminal,
    postgres_server: Server,
    postgres_url: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measures, part, interrupted)
    before = databases(postgres_server)
    with redis_py.Redis.from_url(redis_url) as client:
        keys = set(client.scan_iter("*"))
        with pytest.raises(SystemExit) as ended:
            cli("bench", *TINY, "--db", postgres_url, "--redis", redis_url)
        assert ended.value.code == 130
        assert set(client.scan_iter("*")) == keys
    assert databases(postgres_server) == before


def test_it_counts_lateness_and_what_was_early() -> None:
    late = measures.lateness([(10.0, 10.001), (11.0, 10.5), (12.0, 12.003)], 1, 4, Stalls())
    assert (late.due, late.fired, late.early) == (4, 3, 1)
    assert late.p50_ms == pytest.approx(1.0)
    assert late.max_ms == pytest.approx(3.0)
    nothing = measures.lateness([], 1, 4, Stalls())
    assert (nothing.fired, nothing.p50_ms, nothing.max_ms) == (0, None, None)


async def test_it_tells_how_late_the_machine_itself_is() -> None:
    async with watched() as stalls:
        assert stalls.max_ms is None, "it is known in the end"
        await asyncio.sleep(0.05)
    assert stalls.p99_ms is not None
    assert stalls.max_ms is not None
    assert 0 <= stalls.p99_ms <= stalls.max_ms


async def test_where_the_machine_cannot_be_watched_nothing_is_told_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("noonday.cli.benching.stalls._TIMER", "raise SystemExit(3)")
    async with watched() as stalls:
        pass
    assert stalls == Stalls()
