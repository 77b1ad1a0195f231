"""Looks at all instances again and again, in a thread of its own: who answers, who says that it leads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from tests.cluster.cluster import Cluster
from tests.cluster.history import Poll
from tests.cluster.node import Node


class Watch:
    """`with Watch(cluster) as watch: …`, then `watch.polls`."""

    def __init__(self, cluster: Cluster, beat: float = 0.4) -> None:
        self._cluster = cluster
        self._beat = beat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._polls: list[Poll] = []

    @property
    def polls(self) -> tuple[Poll, ...]:
        return tuple(self._polls)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(20)

    def _run(self) -> None:
        nodes = self._cluster.nodes
        with ThreadPoolExecutor(len(nodes)) as pool:
            while not self._stop.wait(self._beat):
                at = time.time()
                answers: dict[str, Any] = dict(
                    zip([node.name for node in nodes], pool.map(_look, nodes), strict=True)
                )
                self._polls.append(
                    Poll(
                        at=at,
                        answered=frozenset(name for name, health in answers.items() if health),
                        leaders=frozenset(
                            n for n, health in answers.items() if health and health["is_leader"]
                        ),
                    )
                )


def _look(node: Node) -> Any:
    return node.health(patience=1.0) if node.answers else None
