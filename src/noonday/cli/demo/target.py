"""The services of the demonstration: a small server that takes time, tells how far it is, and may fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from noonday.cli.demo.fleet import FLEET, Member
from noonday.cli.demo.telling import chance

__all__ = ["HOST", "answering"]

HOST: Final = "127.0.0.1"
PORT: Final = 18060  # mostly free; at the same place jobs need no change when it starts again
_LONG: Final = 60.0  # seconds; what takes longer answers at once and reports how far it is
_REPORTS: Final = 40
_PATIENCE: Final = 10.0
_MOST_BYTES: Final = 1 << 20
_LINES: Final = {"http": HTTPConnection, "https": HTTPSConnection}


def _path(member: Member) -> str:
    target: Mapping[str, Any] = member.body["target"]
    if target["type"] == "service":
        return f"/{target['service']}{target['endpoint']}"
    return str(target.get("url", "")).removeprefix("{base}")


@dataclass(frozen=True, slots=True)
class _Callback:
    url: str
    token: str

    def post(self, what: str, body: Mapping[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        at = urlsplit(self.url)
        # The scheduler may have gone away, or may not want to hear of it any more.
        with suppress(OSError), closing(_LINES[at.scheme](at.netloc, timeout=_PATIENCE)) as line:
            line.request("POST", f"{at.path}/{what}", json.dumps(body).encode(), headers)
            line.getresponse()


@dataclass(frozen=True, slots=True)
class _Work:
    """One call of a service; `roll` decides how it goes."""

    member: Member
    roll: float

    @property
    def seconds(self) -> float:
        return self.member.seconds * (0.6 + self.roll)

    @property
    def fails(self) -> bool:
        return self.member.trouble is not None or self.roll < self.member.fails

    def result(self) -> dict[str, Any]:
        if self.fails:
            return {"success": False, "error": self.member.error}
        items = self._items
        return {"success": True, "itemsProcessed": items, "itemsSucceeded": items, "itemsFailed": 0}

    def report(self, to: _Callback, ending: threading.Event) -> None:
        """How far it is, now and then, and how it ended."""
        for part in range(1, _REPORTS):
            done = part / _REPORTS
            if ending.wait(self.seconds / _REPORTS):
                return
            items = f"{int(self._items * done):,} of {self._items:,}"
            to.post("progress", {"progress": done, "message": items, "output": f"{items} done\n"})
        to.post("result", self.result())

    @property
    def _items(self) -> int:
        return int(self.member.items * (0.8 + 0.4 * self.roll))


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
        work = _Work(member, chance(member.name, call))
        address = self.headers.get("X-Scheduler-Callback-Url")
        if address and work.seconds > _LONG:
            token = self.headers.get("X-Scheduler-Callback-Token") or ""
            self._send(202, {"accepted": True})
            return work.report(_Callback(address, token), self.ending)
        self.ending.wait(work.seconds)
        return self._send(503 if work.fails else 200, work.result())

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
def answering() -> Iterator[str]:
    """The base URL, for as long as the block lasts; it ends without waiting for calls in progress."""
    _Handler.ending.clear()
    try:
        server = _Server((HOST, PORT), _Handler)
    except OSError:
        server = _Server((HOST, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, name="noonday-demo", daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        _Handler.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()
