"""Is this Redis fit to be a road? Asked by INFO alone, because CONFIG is forbidden at many places."""

from __future__ import annotations

import re
from collections.abc import Mapping

from noonday.domain.errors import RoadDown
from noonday.redis_link import RedisLink, Refused

_OLDEST = (6, 2)


async def doubts(link: RedisLink) -> list[str]:
    """What is wrong with it, in words for the log."""
    try:
        told = await link.pipeline([("INFO", "server"), ("INFO", "memory")])
    except Refused as exc:
        return [f"the version and eviction policy of Redis are unknown, because it does not tell: {exc}"]
    info = facts("\n".join(told))
    if reason := too_old(info):
        raise RoadDown(reason)
    return judge(info)


def facts(info: str) -> dict[str, str]:
    lines = (line.strip().partition(":") for line in info.splitlines())
    return {name: value for name, colon, value in lines if colon}


def too_old(info: Mapping[str, str]) -> str | None:
    version = info.get("redis_version", "")
    if version and tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
        return f"Redis {version} is too old for the streams; they need 6.2 or newer, or Valkey"
    return None


def judge(info: Mapping[str, str]) -> list[str]:
    found = []
    policy = info.get("maxmemory_policy", "noeviction")
    if info.get("maxmemory", "0") != "0" and policy != "noeviction":
        found.append(
            f"Redis may evict the streams or the leader's key when its memory is full, because its "
            f"maxmemory-policy is {policy}; set it to noeviction"
        )
    return found
