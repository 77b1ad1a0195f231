"""What is on the stage: real PostgreSQL and Valkey servers, a target that is called, three instances."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.node import Node
from tests.cluster.target import RecordingTarget
from tests.servers import Server, start_postgres, start_redis  # the tests' own launcher of real servers

FIRST_PORT = 8061
TERM, LEASE = 5, 8  # seconds: short, so that there is something to see
NOTE = Path(".noonday") / "cluster.json"  # where another terminal finds this cluster
# Every due time runs, however late: after a fail-over you see that none is missing.
EVERY_ONE = {"coalesce": False, "catch_up": "all", "overlap": "allow"}


@dataclass(frozen=True, slots=True)
class Beat:
    """A job of the demonstration."""

    name: str
    every: int
    version: int
    road: str


BEATS = (Beat("beat", 1, 2, "the streams"), Beat("pulse", 2, 1, "the database"))


@dataclass(slots=True)
class Scene:
    postgres: Server
    redis: Server
    target: RecordingTarget
    nodes: list[Node] = field(default_factory=list)

    def dead(self) -> list[str]:
        """Names of what does not run any more."""
        servers = {"PostgreSQL": self.postgres, "Redis": self.redis}
        found = [name for name, server in servers.items() if not runs(server)]
        return found + [node.name for node in self.nodes if not node.alive]

    def revive(self) -> None:
        for server in (self.postgres, self.redis):
            if not runs(server):
                server.start()
        for node in self.nodes:
            if not node.alive:
                node.launch()
        self.note()

    def note(self) -> None:
        NOTE.parent.mkdir(exist_ok=True)
        nodes = [{"name": node.name, "url": node.url, "pid": node.pid} for node in self.nodes]
        NOTE.write_text(json.dumps({"redis": self.redis.url, "database": self.postgres.url, "nodes": nodes}))

    def add_jobs(self) -> None:
        for beat in BEATS:
            body: dict[str, Any] = {
                "name": beat.name,
                "schedule_type": "interval",
                "interval_minutes": beat.every,
                "interval_type": "seconds",
                "scheduler_version": beat.version,
                "target": {"type": "http", "url": self.target.of(beat.name)},
                **EVERY_ONE,
            }
            self.nodes[0].ask("POST", "/api/v2/jobs", body)


def runs(server: Server) -> bool:
    return server.process is not None and server.process.poll() is None


@contextmanager
def scene() -> Iterator[Scene]:
    """Everything is ended by its id, and its folders removed, when the block is left."""
    with ExitStack() as exits:
        folder = Path(tempfile.mkdtemp(prefix="nd-cluster-"))
        exits.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres = start_postgres(durable=True, own=True)
        exits.callback(postgres.stop)
        redis = start_redis(keep=True, own=True)
        exits.callback(redis.stop)
        made = Scene(postgres, redis, exits.enter_context(RecordingTarget()))
        exits.callback(NOTE.unlink, missing_ok=True)
        ports = _ports(3)
        exits.callback(_end, made.nodes)
        for number, port in enumerate(ports, 1):
            node = Node(f"node-{number}", port, _settings(made), folder)
            made.nodes.append(node)
            node.launch()
        for node in made.nodes:
            node.wait_until_ready()
        made.note()
        yield made


def _end(nodes: list[Node]) -> None:
    """In order where that takes no longer than a moment."""
    for node in nodes:
        if node.alive:
            node.terminate()
    until = time.monotonic() + 5
    while any(node.alive for node in nodes) and time.monotonic() < until:
        time.sleep(0.05)
    for node in nodes:
        node.end()


def _settings(made: Scene) -> dict[str, str]:
    return {
        "DATABASE_URL": made.postgres.url,
        "REDIS_URL": made.redis.url,
        "SCHEDULER_LEADER_TTL": f"{TERM}s",
        "SCHEDULER_LEASE_TTL": f"{LEASE}s",
        "LOG_FORMAT": "json",
    }


def _ports(number: int) -> list[int]:
    """Easy ones to remember if they are free."""
    found: list[int] = []
    with ExitStack() as probes:
        for wanted in range(FIRST_PORT, FIRST_PORT + number):
            probe = probes.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                probe.bind(("127.0.0.1", 0))
            found.append(probe.getsockname()[1])
    return found
