"""Connections: kept, shared, limited, closed by either side, and only to whom the machine trusts."""

from __future__ import annotations

import asyncio
import datetime
import gc
import ssl
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from noonday.http_client import NoAnswer, NoConnection, NotTrusted
from noonday.http_client.connection import Connection
from tests.http_client.hands import Server, a_pool, answer, ask, listening, serving


async def test_a_connection_serves_one_call_after_the_other() -> None:
    async with serving(*[answer()] * 5) as server, a_pool() as pool:
        for _ in range(5):
            assert (await ask(pool, server)).body == b"fine"
        assert server.connections == 1
        assert server.heads[0].startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: localhost:%d\r\n" % server.port)


async def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async with serving(answer(b"until closed"), answer()) as server, a_pool() as pool:
        assert (await ask(pool, server, "POST")).body == b"until closed"
        await asyncio.sleep(0.05)  # the closing comes
        assert (await ask(pool, server, "POST")).body == b"fine"


async def test_what_may_be_done_twice_is_done_again_when_a_kept_connection_closes() -> None:
    async with serving(answer(), None, answer(b"again")) as server, a_pool() as pool:
        await ask(pool, server)
        assert (await ask(pool, server)).body == b"again"
        assert (server.connections, len(server.heads)) == (2, 3)


async def test_what_may_not_be_done_twice_is_not() -> None:
    async with serving(answer(), None, answer()) as server, a_pool() as pool:
        await ask(pool, server, "POST")
        with pytest.raises(NoAnswer):
            await ask(pool, server, "POST")
        assert len(server.heads) == 2


async def test_a_fresh_connection_that_closes_is_an_answer_of_its_own() -> None:
    async with serving(None, answer()) as server, a_pool() as pool:
        with pytest.raises(NoAnswer):
            await ask(pool, server)


class Slow(Server):
    """Answers when the test says so."""

    def __init__(self) -> None:
        super().__init__([])
        self.go = asyncio.Event()
        self.inside = self.most = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            self.inside += 1
            self.most = max(self.most, self.inside)
            await self.go.wait()
            self.inside -= 1
            writer.write(answer())


async def _arrived(server: Server, count: int) -> None:
    async with asyncio.timeout(20):
        while len(server.heads) < count:
            await asyncio.sleep(0.005)


async def test_only_so_many_calls_are_in_one_place_and_each_has_its_turn() -> None:
    server = Slow()
    async with listening(server), a_pool(per_origin=2) as pool:
        calls = [asyncio.ensure_future(ask(pool, server)) for _ in range(8)]
        await _arrived(server, 2)
        for call in (calls[3], calls[0]):  # one that waits, and one that does not
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await _arrived(server, 3)
        server.go.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        given_up = [place for place, one in enumerate(answers) if isinstance(one, asyncio.CancelledError)]
        assert given_up == [0, 3]
        assert server.most <= 3  # the one that was given up is still there
        assert len(server.heads) == 7


async def test_a_turn_that_comes_while_one_gives_up_goes_to_the_next() -> None:
    server = Slow()
    async with listening(server), a_pool(per_origin=1) as pool:
        first, second, third = (asyncio.ensure_future(ask(pool, server)) for _ in range(3))
        await _arrived(server, 1)
        first.add_done_callback(lambda _: second.cancel())
        server.go.set()
        assert (await first).body == (await third).body == b"fine"


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    server = Slow()
    async with listening(server), a_pool() as pool:
        call = asyncio.ensure_future(ask(pool, server))
        await _arrived(server, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        server.go.set()
        await server.hung_up.wait()


async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with serving(answer()) as server, a_pool(keep_alive=0.05) as pool:
        await ask(pool, server)
        await server.hung_up.wait()
        await asyncio.sleep(0.05)
        assert pool._places == {}
        assert pool._sweeping is None


async def test_calls_fail_when_all_is_closed() -> None:
    server = Slow()
    async with listening(server), a_pool(per_origin=1) as pool:
        calls = [asyncio.ensure_future(ask(pool, server)) for _ in range(3)]
        await _arrived(server, 1)
        pool.close()
        for call in calls:
            with pytest.raises(NoAnswer):
                await call
        assert len(server.heads) == 1
        server.go.set()


async def test_it_leaves_no_circle_behind() -> None:
    gc.collect()
    async with serving(answer()) as server, a_pool() as pool:
        await ask(pool, server)
    await asyncio.sleep(0.05)
    gc.disable()
    try:
        assert not [one for one in gc.get_objects() if isinstance(one, Connection) and one._answer.parser]
    finally:
        gc.enable()


async def test_nobody_listens() -> None:
    async with serving() as server:
        pass
    async with a_pool() as pool:
        with pytest.raises(NoConnection):
            await ask(pool, server)


async def test_it_goes_to_the_address_that_answers() -> None:
    async with serving(answer()) as server, a_pool(hosts=("127.0.0.2", "127.0.0.1")) as pool:
        assert (await ask(pool, server)).body == b"fine"


async def test_a_handshake_takes_only_so_long() -> None:
    class Silent(Server):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

    server = Silent([])
    async with listening(server), a_pool(patience=0.2) as pool:
        with pytest.raises(TimeoutError):
            await ask(pool, server, tls=True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For localhost and nobody else, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.3"))])
    made = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def speaking_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the machine trusts the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.mark.usefixtures("trusting")
async def test_it_speaks_tls_to_whom_the_machine_trusts(speaking_tls: ssl.SSLContext) -> None:
    async with serving(answer(b"x" * 300_000), answer(), tls=speaking_tls) as server, a_pool() as pool:
        assert len((await ask(pool, server, tls=True)).body) == 300_000
        assert (await ask(pool, server, tls=True)).body == b"fine"
        assert server.connections == 1


async def test_it_speaks_to_nobody_else(speaking_tls: ssl.SSLContext) -> None:
    async with serving(answer(), tls=speaking_tls) as server, a_pool() as pool:
        with pytest.raises(NotTrusted, match="certificate verify failed"):
            await ask(pool, server, tls=True)
        assert server.heads == []
