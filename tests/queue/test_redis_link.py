"""The link to Redis: replies, time limits, errors without secrets, connections that stay sound."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from noonday.domain.errors import Invalid, RoadDown
from noonday.redis_link import RedisLink, Refused
from tests.queue.roads import an_id, opened, until
from tests.servers import Server, start_redis

SECRET = "tr0ub4dor&3/#@:"
QUOTED = "tr0ub4dor%263%2F%23%40%3A"


async def test_it_gives_plain_replies_to_commands_and_parsed_ones_to_functions(redis_url: str) -> None:
    key = f"test-{an_id()}"
    async with opened(redis_url) as link:
        assert await link.call("HSET", key, "a", 1) == 1
        assert await link.call("HGETALL", key) == ["a", "1"]
        assert await link.call(lambda: link.client.hgetall(key)) == {"a": "1"}
        replies = await link.pipeline([("HINCRBY", key, "a", 5), ("DEL", key), ("GET", key)])
        assert replies == [6, 1, None]
        assert await link.pipeline([]) == []


async def test_it_raises_the_first_error_of_a_pipeline_after_the_others_ran(redis_url: str) -> None:
    key, other = f"test-{an_id()}", f"test-{an_id()}"
    async with opened(redis_url) as link:
        with pytest.raises(Refused) as refused:
            await link.pipeline([("SET", key, 1), ("LPUSH", key, 2), ("SET", other, 3)])
        assert refused.value.code == "WRONGTYPE"
        assert await link.call("MGET", key, other) == ["1", "3"]
        await link.call("DEL", key, other)


async def test_it_does_all_of_an_atomic_pipeline_or_nothing(redis_url: str) -> None:
    key = f"test-{an_id()}"
    async with opened(redis_url) as link:
        with pytest.raises(Refused):
            await link.pipeline([("SET", key, 1), ("SET",)], atomic=True)
        assert await link.call("GET", key) is None
        assert await link.pipeline([("SET", key, 1), ("DEL", key)], atomic=True) == ["OK", 1]


async def test_it_runs_scripts_that_the_server_does_not_know_or_forgot(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        lua = "return {KEYS[1], ARGV[1], 7}"
        for _ in range(2):
            assert await link.script(lua, ["k"], ["a"]) == ["k", "a", 7]
        await link.call("SCRIPT", "FLUSH")
        assert await link.script(lua, ["k"], ["a"]) == ["k", "a", 7]
        with pytest.raises(Refused):
            await link.script("return redis.call('NOSUCH')", [])


async def test_it_reads_what_is_no_text(redis_url: str) -> None:
    async with opened(redis_url) as link:
        assert await link.call("ECHO", b"a\xffb") == "a\ufffdb"


async def test_it_gives_up_in_time_and_leaves_no_late_answer_behind(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        await link.call("PING")
        own_server.pause()
        started = time.monotonic()
        with pytest.raises(RoadDown, match=r"no answer within 0\.3 s"):
            await link.call("ECHO", "late", patience=0.3)
        assert time.monotonic() - started < 1.5
        own_server.unpause()
        assert await link.call("ECHO", "mine") == "mine"


async def test_it_forgets_the_other_connections_when_one_is_broken(own_server: Server) -> None:
    """Each of them might cost a time-out of its own."""
    async with opened(own_server.url) as link:
        await asyncio.gather(*(link.call("BLPOP", f"k{n}", 0.05) for n in range(5)))
        assert await _connections(link) >= 5
        with pytest.raises(RoadDown):
            await link.call("BLPOP", "k", 5, patience=0.1)
        assert await until(lambda: _only_one(link))


async def test_it_queues_for_a_connection_when_all_are_taken(redis_url: str) -> None:
    async with opened(f"{redis_url}?max_connections=2") as link, opened(redis_url) as watcher:
        echoes = await asyncio.gather(*(link.call("ECHO", str(n)) for n in range(50)))
        assert echoes == [str(n) for n in range(50)]
        blocked = [asyncio.ensure_future(link.call("BLPOP", f"none-{n}", 20, patience=25)) for n in range(2)]
        await until(lambda: _waiting(watcher, 2))
        with pytest.raises(RoadDown, match="No connection available"):
            await link.call("PING")
        for task in blocked:
            task.cancel()
        await asyncio.gather(*blocked, return_exceptions=True)
        assert await link.call("PING") == "PONG"


async def test_it_is_down_after_it_was_closed(redis_url: str) -> None:
    async with opened(redis_url) as link:
        await link.call("PING")
    with pytest.raises(RoadDown, match="closed"):
        await link.call("PING")
    await link.close()


async def test_it_closes_what_is_in_use(redis_url: str) -> None:
    async with opened(redis_url) as link:
        blocked = asyncio.ensure_future(link.call("BLPOP", "none", 20, patience=25))
        await until(lambda: _waiting(link, 1))
    with pytest.raises(RoadDown):
        await blocked


async def test_it_never_shows_the_password(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        await link.call("CONFIG", "SET", "requirepass", SECRET)
        address = own_server.url.removeprefix("redis://")
        async with opened(f"redis://:{QUOTED}@{address}") as right:
            assert await right.call("PING") == "PONG"
            # Servers quote the beginning of commands that they do not know.
            with pytest.raises(Refused) as told:
                await right.call("NOSUCH", SECRET)
        _tells_nothing(told.value, SECRET)
        for wrong in (
            f"redis://:{QUOTED}x@{address}",
            f"redis://{address}",
            f"redis://me:{QUOTED}@{address}",
        ):
            async with opened(wrong) as link2:
                with pytest.raises(RoadDown) as refused:
                    await link2.call("PING")
                _tells_nothing(refused.value, SECRET)
                with pytest.raises(RoadDown):
                    await link2.pipeline([("PING",), ("PING",)])
        own_server.halt()
        async with opened(f"redis://:{QUOTED}@{address}") as gone:
            with pytest.raises(RoadDown) as refused:
                await gone.call("PING")
            _tells_nothing(refused.value, SECRET)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ss#word@somewhere:6379/0",
        "redis://:hunter2@somewhere:99999/0",
        "http://user:hunter2@somewhere",
        "redis://:hunter2@somewhere?colour=blue",
        "redis://:hunter2@somewhere?db=many",
    ],
)
def test_it_refuses_a_wrong_url_without_showing_it(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        RedisLink(url)
    assert "REDIS_URL" in str(refused.value)
    _tells_nothing(refused.value, "hunter2", "pa/ss", "ss#word")


async def test_it_is_down_while_nobody_listens_or_the_name_is_unknown() -> None:
    for url in ("redis://127.0.0.1:1/0", "redis://no-such-host.invalid:6379/0", "unix:///no/such/socket"):
        async with opened(url) as link:
            with pytest.raises(RoadDown):
                async with asyncio.timeout(3):
                    await link.call("PING")


async def test_it_is_down_on_a_server_that_speaks_something_else() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, opened(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as link:
        with pytest.raises(RoadDown):
            await link.call("PING")


async def test_it_is_down_while_the_server_loads_or_only_reads(own_server: Server) -> None:
    async with opened(own_server.url) as link:
        await link.call("REPLICAOF", "127.0.0.1", 1)
        with pytest.raises(RoadDown, match="read only"):
            await link.call("SET", "a", "b")
        await link.call("REPLICAOF", "NO", "ONE")
        assert await link.call("SET", "a", "b") == "OK"


async def test_it_works_over_a_unix_socket() -> None:
    server = start_redis(own=True, more={"unixsocket": "redis.sock"})
    try:
        assert server.folder is not None
        async with opened(f"unix://{server.folder / 'redis.sock'}?db=3") as link:
            assert await link.call("SET", "a", "b") == "OK"
        async with opened(server.url.replace("/0", "/3")) as link:
            assert await link.call("GET", "a") == "b"
    finally:
        server.stop()


async def test_it_works_over_tls_and_trusts_no_stranger(redis_url: str, tmp_path: Path) -> None:
    certificate, key = _signed_by_itself(tmp_path)
    async with _tls_in_front_of(redis_url, certificate, key) as port:
        async with opened(f"rediss://localhost:{port}/0?ssl_ca_certs={certificate}") as link:
            assert await link.call("ECHO", "safe") == "safe"
        async with opened(f"rediss://localhost:{port}/0") as link:
            with pytest.raises(RoadDown, match=r"(?i)certificate"):
                await link.call("PING")


def _signed_by_itself(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost, and its key."""
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    subject = x509.SubjectKeyIdentifier.from_public_key(secret.public_key())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=2))
        .add_extension(subject, critical=False)
        .add_extension(issuer, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


@asynccontextmanager
async def _tls_in_front_of(url: str, certificate: Path, key: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    target = urlsplit(url)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(copy(reader, outer), copy(inner, writer), return_exceptions=True)
        outer.close()
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _tells_nothing(error: BaseException | None, *secrets: str) -> None:
    """Neither its text nor what a traceback would show of its causes."""
    while error is not None:
        for secret in secrets:
            assert secret not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


async def _connections(link: RedisLink) -> int:
    told: str = await link.call("CLIENT", "LIST")
    return len(told.splitlines())


async def _waiting(link: RedisLink, count: int) -> bool:
    told: str = await link.call("CLIENT", "LIST")
    return sum("cmd=blpop" in line and "flags=b" in line for line in told.splitlines()) == count


async def _only_one(link: RedisLink) -> bool:
    return await _connections(link) == 1
