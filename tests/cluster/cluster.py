"""Three instances on one PostgreSQL and one Redis, each of them behind proxies of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from redis import Redis

from tests.cluster.node import Node, eventually
from tests.cluster.target import RecordingTarget
from tests.proxy import Proxy
from tests.servers import Server, start_postgres, start_redis

LEADER_TTL = 3.0
LEASE = 4.0
SWEEP = 5.0
CHECK_INTERVAL = 2.0
PREFIX = "crawler"
LANES = ("high", "normal", "low")
_SETTINGS = {
    "LOG_FORMAT": "json",
    "SCHEDULER_LEADER_TTL": f"{LEADER_TTL:g}s",
    "SCHEDULER_LEASE_TTL": f"{LEASE:g}s",
    "SCHEDULE_CHECK_INTERVAL": f"{CHECK_INTERVAL:g}s",
    "SCHEDULER_CB_THRESHOLD": "100000",  # all jobs call one target, whose failures are made on purpose
    "SCHEDULER_QUEUE_PREFIX": PREFIX,
    "TASK_MODULES": "cluster_tasks",
    "PYTHONPATH": str(Path(__file__).parent),
}


@dataclass(slots=True)
class Member:
    """An instance and its two ways out."""

    node: Node
    postgres: Proxy
    redis: Proxy

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(slots=True)
class Cluster:
    folder: Path
    postgres: Server
    redis: Server
    target: RecordingTarget
    members: list[Member] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [member.node for member in self.members]

    def member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    def leaders(self) -> list[Node]:
        asked = [(node, node.health()) for node in self.nodes if node.answers]
        return [node for node, health in asked if health and health["is_leader"]]

    def leader(self, within: float = 20.0, other_than: Node | None = None) -> Node:
        """The one that leads, as soon as one and only one does."""

        def one() -> Node | None:
            found = self.leaders()
            return found[0] if len(found) == 1 and found[0] is not other_than else None

        return eventually(one, within, "no instance leads alone")

    def follower(self) -> Node:
        leader = self.leader()
        return next(node for node in self.nodes if node.answers and node is not leader)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Of any instance that is up, as a load balancer would choose it."""
        trouble: list[Exception] = []
        for node in self.nodes:
            if node.answers:
                try:
                    return node.ask(method, path, body)
                except OSError as exc:
                    trouble.append(exc)
        raise AssertionError(f"{method} {path}: nobody answers: {trouble}")

    @contextmanager
    def sql(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.postgres.url, autocommit=True) as conn:
            yield conn

    @contextmanager
    def keys(self) -> Iterator[Redis]:
        client = Redis.from_url(self.redis.url, socket_timeout=5)
        try:
            yield client
        finally:
            client.close()

    def on_the_road(self) -> dict[str, int]:
        """Messages on the streams that are left, waiting or in hands; empty when all is done."""
        left = {}
        with self.keys() as keys:
            for lane in LANES:
                name = f"{PREFIX}:jobs:{lane}"
                if length := int(keys.xlen(name)):
                    left[name] = length
                for group in keys.xinfo_groups(name) if keys.exists(name) else ():
                    if pending := int(group["pending"]):
                        left[f"{name} pending"] = pending
        return left

    def unread(self, lane: str) -> int:
        """Messages in nobody's hands."""
        road = self.on_the_road()
        name = f"{PREFIX}:jobs:{lane}"
        return road.get(name, 0) - road.get(f"{name} pending", 0)

    def heal(self) -> None:
        """Everything up, nobody paused or cut off, one leader, all on the same road."""
        for server in (self.postgres, self.redis):
            if server.process is None or server.process.poll() is not None:
                server.start()
        for member in self.members:
            member.postgres.resume()
            member.redis.resume()
            if member.node.alive and member.node.paused:
                member.node.wake()
            if not member.node.alive:
                member.node.launch()
        for node in self.nodes:
            node.wait_until_ready()
        self.leader()
        eventually(lambda: self.roads() == {"streams"}, 20, "not every instance takes the streams")

    def roads(self) -> set[str]:
        """How version 2 goes, as the instances say that answer."""
        return {health["road"] for node in self.nodes if node.answers and (health := node.health())}

    def told(self) -> str:
        """The ends of all logs, for a failure."""
        return "\n".join(f"--- {node.name}\n{node.tail()}" for node in self.nodes)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(folder: Path, instances: int = 3, **settings: str) -> Iterator[Cluster]:
    """Real servers of its own, real processes; everything is ended, by its id, when the block is left."""
    with ExitStack() as exits:
        # Killed on purpose, so that it must keep what it acknowledged.
        postgres = start_postgres(durable=True, own=True)
        exits.callback(postgres.stop)
        keys = start_redis(keep=True, own=True)
        exits.callback(keys.stop)
        cluster = Cluster(folder, postgres, keys, exits.enter_context(RecordingTarget()))
        for number in range(1, instances + 1):
            ways = [exits.enter_context(Proxy.to(server.url)) for server in (postgres, keys)]
            env = {"DATABASE_URL": ways[0].url, "REDIS_URL": ways[1].url, **_SETTINGS, **settings}
            node = Node(f"node-{number}", free_port(), env, folder)
            exits.callback(node.end)
            cluster.members.append(Member(node, *ways))
            node.launch()
        for node in cluster.nodes:
            node.wait_until_ready()
        yield cluster
