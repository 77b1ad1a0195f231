"""The one way to Redis: connections, time-outs, and errors turned into RoadDown."""

from __future__ import annotations


class RedisLink:
    """Connections to one Redis or Valkey, shared by the road, the leadership, the locks and the ears."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def close(self) -> None: ...
