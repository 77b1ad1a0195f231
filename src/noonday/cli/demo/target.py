"""The services of the demonstration: one small server that takes its time, and fails at times."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from noonday.cli.demo.fleet import FLEET, Member
from noonday.cli.demo.runs import chance

__all__ = ["HOST", "answering"]

HOST: Final = "127.0.0.1"
_LONGEST: Final = 90.0  # seconds; nobody watches for half an hour
_MOST_BYTES: Final = 1 << 20


def _path(member: Member) -> str:
    target: Mapping[str, Any] = member.body["target"]
    if target["type"] == "service":
        return f"/{target['service']}{target['endpoint']}"
    return str(target.get("url", "")).removeprefix("{base}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    members: ClassVar[Mapping[str, Member]] = {_path(member): member for member in FLEET}
    ending: ClassVar[threading.Event] = threading.Event()

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.rfile.read(min(int(self.headers.get("Content-Length") or 0), _MOST_BYTES))
        member = self.members.get(urlsplit(self.path).path)
        if member is None:
            return self._send(404, {"success": False, "error": "nothing lives here", "retryable": False})
        call = self.headers.get("X-Request-Id") or self.headers.get("traceparent") or id(self)
        roll = chance(member.name, call)
        self.ending.wait(min(member.seconds * (0.6 + roll), _LONGEST))
        if member.trouble is not None or roll < member.fails:
            return self._send(503, {"success": False, "error": member.error})
        items = int(member.items * (0.8 + 0.4 * roll))
        return self._send(
            200, {"success": True, "itemsProcessed": items, "itemsSucceeded": items, "itemsFailed": 0}
        )

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """The scheduler says what it calls; nobody needs it twice."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that has gone away."""


@contextmanager
def answering(port: int = 0) -> Iterator[str]:
    """The base URL, for as long as the block lasts; it ends without waiting for calls in progress."""
    _Handler.ending.clear()
    server = _Server((HOST, port), _Handler)
    thread = threading.Thread(target=server.serve_forever, name="noonday-demo", daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        _Handler.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()
