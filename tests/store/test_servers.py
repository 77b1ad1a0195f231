"""The servers that tests are given are real ones."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest
import redis

from tests import servers
from tests.proxy import Proxy
from tests.servers import Server, start_postgres, start_redis


def test_redis_answers_and_keeps_a_stream(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
        entry = client.xadd("noonday-test", {"id": "1"})
        assert client.xrange("noonday-test") == [(entry, {b"id": b"1"})]
        client.delete("noonday-test")


def test_postgres_is_not_root_and_far_from_utc(postgres_server: Server) -> None:
    with psycopg.connect(postgres_server.url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
        if postgres_server.process is not None and os.geteuid() == 0:
            assert os.stat(f"/proc/{postgres_server.process.pid}").st_uid == servers.NOBODY


def test_binaries_under_a_private_folder_are_copied(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts servers as somebody else")
    binaries = tmp_path / "pkg" / "pginstall" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "postgres").write_text("")
    (tmp_path / "pkg.libs").mkdir()
    (tmp_path / "pkg.libs" / "libpq.so").write_text("")
    tmp_path.chmod(0o700)
    target = tmp_path / "target"
    target.mkdir()
    found = servers._reachable_binaries(binaries, target)
    assert found == target / "copy" / "pkg" / "pginstall" / "bin"
    assert (found / "postgres").exists()
    assert (target / "copy" / "pkg.libs" / "libpq.so").exists()


def test_a_postgres_that_is_stopped_or_killed_comes_back_with_what_it_had() -> None:
    server = start_postgres(durable=True, own=True)
    try:
        with psycopg.connect(server.url, autocommit=True) as conn:
            conn.execute("CREATE TABLE kept (n int)")
        for end in (server.halt, server.kill):
            with psycopg.connect(server.url, autocommit=True) as conn:
                conn.execute("INSERT INTO kept VALUES (1)")
                end()
                with pytest.raises(psycopg.OperationalError):
                    conn.execute("SELECT pg_sleep(30)")  # a child notices by itself, a moment later
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(server.url)
            server.start()
        with psycopg.connect(server.url) as conn:
            assert conn.execute("SELECT count(*) FROM kept").fetchone() == (2,)
    finally:
        server.stop()


def test_a_redis_comes_back_with_its_data_or_without() -> None:
    server = start_redis(keep=True, own=True)
    try:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "1")
            server.kill()
            server.start()
            assert client.get("kept") == b"1"
            server.restart(wipe=True)
            assert client.get("kept") is None
    finally:
        server.stop()


def test_the_proxy_cuts_refuses_and_lets_pass(postgres_url: str) -> None:
    with Proxy.to(postgres_url) as proxy:
        with psycopg.connect(proxy.url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
            assert proxy.cut() == 1
            with pytest.raises(psycopg.OperationalError):
                conn.execute("SELECT 1")
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url)
        proxy.resume()
        psycopg.connect(proxy.url).close()


def test_the_proxy_holds_what_flows_until_it_resumes(redis_url: str) -> None:
    with Proxy.to(redis_url) as proxy, redis.Redis.from_url(proxy.url, socket_timeout=0.2) as client:
        assert client.ping()
        proxy.hold(up=False)
        with pytest.raises(redis.TimeoutError):
            client.ping()
        proxy.resume()
        assert client.ping()


@pytest.mark.parametrize("answered", [True, False])
def test_the_proxy_loses_the_answer_of_a_commit_or_the_commit_itself(
    postgres_url: str, answered: bool
) -> None:
    with psycopg.connect(postgres_url) as conn:
        conn.execute("CREATE TABLE made (n int)")
    with Proxy.to(postgres_url) as proxy:
        with psycopg.connect(proxy.url) as conn:
            sprung = proxy.trap(b"COMMIT", answered=answered)
            conn.execute("INSERT INTO made VALUES (1)")
            with pytest.raises(psycopg.OperationalError):
                conn.commit()
            assert sprung.wait(5)
        psycopg.connect(proxy.url).close()
    with psycopg.connect(postgres_url) as conn:
        assert conn.execute("SELECT count(*) FROM made").fetchone() == (int(answered),)
