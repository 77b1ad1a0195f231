"""A live instance: one process on SQLite, and one on PostgreSQL and Redis; and services that it calls."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.crash.processes import Noonday, eventually, world
from tests.seeds.curl import Answer, curl
from tests.servers import Server


class Service:
    """Answers each call with a JobResult, and keeps the JobContexts that it was given."""

    def __init__(self) -> None:
        kept: list[dict[str, Any]] = []
        self.calls = kept

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                kept.append({"path": self.path, **body})
                self._answer({"success": True, "itemsProcessed": 3, "itemsSucceeded": 2, "itemsFailed": 1})

            def do_GET(self) -> None:
                kept.append({"path": self.path})
                self._answer({})

            def _answer(self, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Live:
    def __init__(self, process: Noonday, service: Service, kind: str) -> None:
        self.process, self.service, self.kind = process, service, kind
        self.url = process.url

    def curl(self, command: str, **headers: str) -> Answer:
        return curl(command, self.url, **headers)

    def ok(self, command: str, **headers: str) -> Any:
        answer = self.curl(command, **headers)
        assert answer.status < 300, (command, answer.status, answer.text)
        return answer.json if answer.text else None

    def until(self, look: Callable[[], Any]) -> Any:
        return eventually(look)

    def ended(self, execution_id: str) -> dict[str, Any]:
        """The execution, once it is over."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.ok(f"curl localhost/api/v2/executions/{execution_id}")
            return found if found["completed_at"] else None

        found: dict[str, Any] = eventually(look)
        return found


@contextmanager
def _database(server: Server) -> Iterator[str]:
    name = f"noonday_seeds_{os.getpid()}"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield server.url.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module", params=["sqlite", "postgres and redis"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    service = Service()
    more = {"EMAIL_SERVICE_URL": service.url, "SCHEDULER_QUEUE_PREFIX": f"seeds-{os.getpid()}"}
    try:
        if request.param == "sqlite":
            yield from _serving(f"sqlite:///{folder / 'noonday.db'}", folder, service, "sqlite", more)
        else:
            more["REDIS_URL"] = request.getfixturevalue("redis_url")
            more["SCHEDULER_LEADER_KEY"] = f"seeds-leader-{os.getpid()}"
            with _database(request.getfixturevalue("postgres_server")) as url:
                yield from _serving(url, folder, service, "cluster", more)
    finally:
        service.close()


def _serving(url: str, folder: Path, service: Service, kind: str, settings: dict[str, str]) -> Iterator[Live]:
    with world(url, folder, **settings) as here:
        yield Live(here.start(), service, kind)
