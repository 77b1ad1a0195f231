"""Tells what happens on the stage, a line for each change: who leads, who died, who is back, what fired."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from typing import Any

from redis import Redis, RedisError

from demo.scene import BEATS, Scene
from tests.cluster.history import Arrival
from tests.cluster.node import Node

WORDS = {"streams": "the streams again", "database": "the database road"}
EVERY = 5.0  # seconds between two lines about the fires


class Narrator:
    def __init__(self, scene: Scene, say: Callable[[str], None] | None = None) -> None:
        self._scene = scene
        self._say = say or _print
        self._pool = ThreadPoolExecutor(len(scene.nodes))
        self._redis = Redis.from_url(scene.redis.url, socket_timeout=1, socket_connect_timeout=1)
        self._states = {node.name: "up" for node in scene.nodes}
        self._leader: str | None = None
        self._last_led = time.monotonic()
        self._flushes: int | None = 0
        self._roads = {"streams"}
        self._told = len(scene.target.arrivals())
        self._tell_at = time.monotonic() + EVERY

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._redis.close()

    def look(self) -> None:
        """One look at everything; says only what is new."""
        nodes = self._scene.nodes
        healths = dict(zip([node.name for node in nodes], self._pool.map(_health, nodes), strict=True))
        for node in nodes:
            self._see_node(node, bool(healths[node.name]))
        self._see_leader({name for name, health in healths.items() if health and health["is_leader"]})
        self._see_redis()
        self._see_roads({health["road"] for health in healths.values() if health})
        if time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + EVERY
            self._tell_fires()

    def _see_node(self, node: Node, well: bool) -> None:
        now = "up" if well else "silent" if node.alive else "dead"
        before, self._states[node.name] = self._states[node.name], now
        if now == before or (before, now) == ("dead", "silent"):  # it is being started
            return
        words = {
            "up": f"{node.name} is back, pid {node.pid}",
            "silent": f"{node.name} does not answer",
            "dead": f"{node.name} died ({_cause(node)})",
        }
        self._say(words[now])

    def _see_leader(self, leaders: set[str]) -> None:
        if len(leaders) != 1:
            return
        [name] = leaders
        now = time.monotonic()
        if name != self._leader:
            node = next(node for node in self._scene.nodes if node.name == name)
            after = "" if self._leader is None else f", {now - self._last_led:.1f} s after {self._leader}"
            self._say(f"{name} leads{after}: kill -9 {node.pid}")
            self._leader = name
        self._last_led = now

    def _see_redis(self) -> None:
        try:
            stats: Any = self._redis.info("commandstats")
            found = int(stats.get("cmdstat_flushall", {}).get("calls", 0))
        except (RedisError, OSError):
            if self._flushes is not None:
                self._say("Redis vanished")
            self._flushes = None
            return
        if self._flushes is None:
            self._say("Redis is back")
        elif found > self._flushes:
            self._say("Redis was flushed: what was on the streams is put there again from the rows")
        self._flushes = found

    def _see_roads(self, roads: set[str]) -> None:
        if len(roads) == 1 and roads != self._roads:
            self._roads = roads
            self._say(f"version 2 takes {WORDS[roads.copy().pop()]}")

    def _tell_fires(self) -> None:
        arrivals = self._scene.target.arrivals()
        new, self._told = arrivals[self._told :], len(arrivals)
        if new:
            late = max(one.at - one.due for one in new)
            self._say(f"{len(new)} fires in {EVERY:g} s, the latest {late:.2f} s late")
        else:
            self._say(f"no fire in {EVERY:g} s")

    def sum_up(self) -> list[str]:
        """Per job: due times from the first to the last that arrived, and how many of them did."""
        return [account(beat.name, beat.every, self._scene.target.arrivals()) for beat in BEATS]


def account(job: str, every: int, arrivals: list[Arrival]) -> str:
    dues = sorted({one.due for one in arrivals if one.job == job})
    again = sum(one.job == job for one in arrivals) - len(dues)
    lost = sum(round((later - one) / every) - 1 for one, later in pairwise(dues))
    return f"{job}: {len(dues) + lost} due, {len(dues)} arrived, {lost} lost, {again} delivered again"


def _health(node: Node) -> Any:
    return node.health(patience=1.0) if node.alive else None


def _cause(node: Node) -> str:
    code = node.exit_code
    return f"signal {-code}" if code is not None and code < 0 else f"exit {code}"


def _print(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S}  {text}", flush=True)  # noqa: DTZ005 - the clock on the reader's wall
