"""Answers as servers give them: whole, in pieces, packed, cut short, endless, or not HTTP at all."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from noonday.http_client import BrokeOff, CallFailed, NoAnswer, NotHttp, head_of, outline
from noonday.http_client.connection import Connection
from tests.http_client.hands import Kept, a_pool, answer, ask, serving

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-B: one\r\nx-b: two\r\n\r\n"
CHUNKS = CHUNKED + b"3;name=value\r\nfin\r\n1\r\ne\r\n0\r\nX-Trailer: 1\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nX-How: until closed\r\n\r\nfine"
PACKED = gzip.compress(b"fine " * 1000, mtime=0)


class Wire(asyncio.Transport):
    """The other end of a connection, in the hands of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted


async def _fed(parts: list[bytes], *, closed: bool = False) -> tuple[Kept, bool]:
    """What is read when it comes in these parts, and whether the connection can be used again."""
    connection, kept = Connection(), Kept()
    connection.connection_made(Wire())
    exchange = asyncio.ensure_future(connection.exchange(b"GET", kept))
    await asyncio.sleep(0)
    for part in parts:
        connection.data_received(part)
    if closed:
        connection.connection_lost(None)
    return kept, await exchange


def _in_parts(data: bytes, cuts: set[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places) if a < b]


@pytest.mark.parametrize(
    ("said", "body", "lasting"),
    [
        (answer(), b"fine", True),
        (answer(b""), b"", True),
        (CHUNKS, b"fine", True),
        (EARLY + answer(), b"fine", True),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Same\r\nContent-Length: 10\r\n\r\n", b"", True),
        (answer(b"fine", "Connection: close"), b"fine", False),
        (answer(first="HTTP/1.0 200 OK"), b"fine", False),
        (answer(b"fine", "Connection: keep-alive", first="HTTP/1.0 200 OK"), b"fine", True),
        (answer(PACKED, "Content-Encoding: gzip"), b"fine " * 1000, True),
        (answer(PACKED + PACKED, "Content-Encoding: x-gzip"), b"fine " * 2000, True),
        (answer(zlib.compress(b"fine"), "content-encoding: Deflate"), b"fine", True),
        (answer(zlib.compress(b"fine")[2:-4], "Content-Encoding: deflate"), b"fine", True),
        (answer(b"as it is", "Content-Encoding: br"), b"as it is", True),
        (answer(b"", "Content-Encoding: gzip"), b"", True),
        (b"HTTP/1.1 200 OK\nContent-Length: 4\n\nfine", b"fine", True),
    ],
    ids=count(1),
)
@given(data=st.data())
def test_it_is_the_same_in_whatever_pieces_it_comes(
    said: bytes, body: bytes, lasting: bool, data: st.DataObject
) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(said)), max_size=12))
    kept, again = asyncio.run(_fed(_in_parts(said, cuts)))
    assert (kept.body, again) == (body, lasting)
    if b"X-B" in said:
        assert kept.headers["x-b"] == "one"
        assert "x-trailer" not in kept.headers


async def test_without_a_length_it_ends_with_its_connection() -> None:
    kept, again = await _fed([UNTIL_CLOSED], closed=True)
    assert (kept.body, again) == (b"fine", False)
    async with serving(UNTIL_CLOSED, UNTIL_CLOSED) as server, a_pool() as pool:
        assert [(await ask(pool, server)).body for _ in range(2)] == [b"fine", b"fine"]
        assert server.connections == 2


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Len", BrokeOff),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", BrokeOff),
        (CHUNKED + b"3\r\nfi", BrokeOff),
        (CHUNKED + b"zz\r\nfi", NotHttp),
        (answer(PACKED[:-20], "Content-Encoding: gzip"), BrokeOff),
        (answer(b"not packed", "Content-Encoding: gzip"), BrokeOff),
        (b"SSH-2.0-OpenSSH_9.2\r\n", NotHttp),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", NotHttp),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", NotHttp),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", NotHttp),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000, NotHttp),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000, NotHttp),
        (CHUNKED + b"3\r\nfin\r\n0\r\nX-Trailer: " + b"x" * 100_000, NotHttp),
    ],
    ids=count(1),
)
async def test_what_is_no_whole_answer_fails(said: bytes, error: type[CallFailed]) -> None:
    with pytest.raises(error):
        await _fed(_in_parts(said, set(range(1000, len(said), 1000))), closed=True)


async def test_nothing_is_no_answer() -> None:
    with pytest.raises(NoAnswer):
        await _fed([], closed=True)


async def test_a_head_without_its_body_is_the_whole_answer_to_head() -> None:
    async with serving(answer()[:-4], answer()[:-4]) as server, a_pool() as pool:
        for _ in range(2):
            kept = await ask(pool, server, "HEAD")
            assert (kept.status, kept.body, kept.headers["content-length"]) == (200, b"", "4")


async def test_more_than_was_asked_for_is_nobodys_answer() -> None:
    async with serving(answer() + answer(b"poison"), answer()) as server, a_pool() as pool:
        assert [(await ask(pool, server)).body for _ in range(2)] == [b"fine", b"fine"]
        assert server.connections == 2


async def test_a_bomb_is_unpacked_only_as_far_as_it_is_read() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with serving(answer(bomb, "Content-Encoding: gzip")) as server, a_pool() as pool:
        kept = await ask(pool, server, most=100_000)
    assert 100_000 < len(kept.body) < 100_000 + 65_537


async def test_what_a_reader_raises_is_raised_to_its_caller() -> None:
    class Clumsy(Kept):
        def add(self, chunk: bytes) -> bool:
            raise LookupError("clumsy")

    connection = Connection()
    wire = Wire()
    connection.connection_made(wire)
    exchange = asyncio.ensure_future(connection.exchange(b"GET", Clumsy()))
    await asyncio.sleep(0)
    connection.data_received(answer())
    with pytest.raises(LookupError, match="clumsy"):
        await exchange
    assert wire.aborted


def test_a_request_is_what_it_says() -> None:
    url = URL("http://ex.test:8080/a b?q=ä#there")
    assert head_of("PUT", url, {"X-A": "ü"}, 3) == (
        b"PUT /a%20b?q=%C3%A4 HTTP/1.1\r\nHost: ex.test:8080\r\nX-A: \xc3\xbc\r\nContent-Length: 3\r\n\r\n"
    )
    assert head_of("GET", URL("http://[::1]"), {}, 0) == b"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"
    assert head_of("POST", URL("https://ex.test:443"), {}, 0).endswith(
        b"ex.test\r\nContent-Length: 0\r\n\r\n"
    )


def test_an_outline_is_filled_with_what_differs() -> None:
    url = URL("http://ex.test/a")
    assert outline("POST", url, {"X-B": "ü"}, 2).filled("X-A: 1\r\n", b"{}") == (
        head_of("POST", url, {"X-A": "1", "X-B": "ü"}, 2) + b"{}"
    )


@pytest.mark.parametrize("value", ["a\r\nX-B: 2", "a\nb", "a\rb", "a\0b"])
def test_no_header_makes_another(value: str) -> None:
    for headers in ({"X-A": value}, {value: "1"}):
        with pytest.raises(ValueError, match="control character"):
            head_of("GET", URL("http://ex.test/"), headers, 0)
