"""The servers that tests are given are real ones."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest
import redis

from tests import servers
from tests.servers import Server


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
