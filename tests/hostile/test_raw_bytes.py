"""Bytes that are no request, or two at once: a real process answers no, or hangs up, and goes on."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from tests.crash.processes import Noonday, world

PATIENCE = 20.0
HOST = b"Host: localhost\r\n"
POST = b"POST /api/v2/jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SECOND = b"DELETE /api/v2/jobs/victim HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
NO_REQUESTS = [
    b"\r\n\r\n\r\n",
    b"\x00" * 1000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 200,  # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"hello\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
    b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 500_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 50_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nno colon here\r\n\r\n",
    b"GET / HTTP/1.1\r\nX : a\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: a\x00b\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b" folded: x\r\n\r\n",
    b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
    b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n",
    b"GET /api/v2/jobs HTTP/1.1\r\n\r\n",
    b"GET /api/v2/jobs HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
    b"GET /api/../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n",
    POST + b"Content-Length: -1\r\n\r\n{}",
    POST + b"Content-Length: 1e3\r\n\r\n{}",
    POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    POST + b"Content-Length: 2000000\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
    POST + b"Transfer-Encoding: identity, chunked, gzip\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
]
# What one reader takes for the body of the first is a second request for another.
SMUGGLED = [
    POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND,
    POST + b"Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}" + SECOND,
    POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SECOND,
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SECOND,
    POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + SECOND,
]


@pytest.fixture(scope="module")
def noonday(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noonday]:
    folder = tmp_path_factory.mktemp("raw")
    with world(f"sqlite:///{folder}/noonday.db", folder) as here:
        started = here.start(TASK_MODULES="")
        started.ask("POST", "/api/v2/jobs", {"name": "victim", "url": "https://example.com/"})
        yield started


def _dial(noonday: Noonday) -> socket.socket:
    address = urlsplit(noonday.url)
    return socket.create_connection((address.hostname or "", address.port or 0), PATIENCE)


def _answers(noonday: Noonday, sent: bytes, *, whole: bool = False) -> list[int]:
    """The status of each answer until the server hangs up; unless the request is whole, we do it first."""
    with _dial(noonday) as line:
        heard = b""
        try:
            line.sendall(sent)
            if not whole:
                line.shutdown(socket.SHUT_WR)
            while chunk := line.recv(65_536):
                heard += chunk
        except OSError:
            pass  # hung up while we were still talking
    return [int(status) for status in re.findall(rb"^HTTP/1\.1 (\d{3})", heard, re.MULTILINE)]


@pytest.mark.parametrize("sent", NO_REQUESTS, ids=lambda sent: repr(sent[:30]))
def test_what_is_no_request_gets_a_refusal_or_nothing(noonday: Noonday, sent: bytes) -> None:
    answers = _answers(noonday, sent)
    assert all(400 <= status < 500 for status in answers), answers
    assert len(answers) <= 1
    _is_well(noonday)


@pytest.mark.parametrize("sent", SMUGGLED, ids=lambda sent: repr(sent[80:130]))
def test_no_second_request_hides_in_the_first(noonday: Noonday, sent: bytes) -> None:
    (status,) = _answers(noonday, sent, whole=True)
    assert 400 <= status < 500
    _is_well(noonday)


def test_callers_who_never_finish_hold_up_nobody(noonday: Noonday) -> None:
    with ExitStack() as lines:
        for number in range(150):
            line = lines.enter_context(_dial(noonday))
            line.sendall(b"GET / HTTP/1.1\r\n" if number % 2 else POST + b"Content-Length: 100\r\n\r\n{")
        _is_well(noonday)
    _is_well(noonday)


def _is_well(noonday: Noonday) -> None:
    assert noonday.ask("GET", "/health/live")
    assert noonday.ask("GET", "/api/v2/jobs/victim")["name"] == "victim"
    assert "Traceback" not in noonday.lines()
