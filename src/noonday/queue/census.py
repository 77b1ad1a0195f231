"""Counts what is on the road: which executions are missing, how deep each lane is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from noonday.domain.execution import ExecutionId
from noonday.domain.job import Lane
from noonday.ports import Parcel
from noonday.queue import scripts
from noonday.queue.messages import GROUP, Keys
from noonday.redis_link import RedisLink, Refused

_PAGE = 5_000
_MOST = 200_000  # messages looked at per lane; what lies beyond counts as present


async def missing(link: RedisLink, keys: Keys, parcels: Sequence[Parcel]) -> list[Parcel]:
    wanted: dict[Lane, set[ExecutionId]] = defaultdict(set)
    for parcel in parcels:
        wanted[parcel.lane].add(parcel.execution_id)
    gone = {lane: await _absent(link, keys[lane], ids) for lane, ids in wanted.items()}
    return [parcel for parcel in parcels if parcel.execution_id in gone[parcel.lane]]


async def depths(link: RedisLink, keys: Keys) -> Mapping[Lane, int]:
    """The length of a stream is its depth, because acknowledging deletes. (`lag` is unknown to Redis 6.2.)"""
    lengths = await link.pipeline([("XLEN", key) for key in keys.values()])
    return dict(zip(keys, lengths, strict=True))


async def _absent(link: RedisLink, key: str, wanted: set[ExecutionId]) -> set[ExecutionId]:
    """First what was delivered and is held, then what lies there: a message that moves on meanwhile is seen
    in the one or the other."""
    try:
        delivered = await _last_delivered(link, key)
        held = {row[0] async for page in _pages(link, "XPENDING", key, GROUP) for row in page}
    except Refused as exc:
        if not no_such_road(exc):
            raise
        return wanted
    absent, seen = set(wanted), 0
    async with aclosing(_messages(link, key, "-", delivered)) as in_hands:
        async for receipts, ids in in_hands:
            seen += len(ids)
            absent.difference_update(
                named
                for receipt, named in zip(receipts, ids, strict=True)
                if receipt in held or len(held) >= _MOST
            )
    async with aclosing(_messages(link, key, f"({delivered}", "+")) as waiting:
        async for _, ids in waiting:
            seen += len(ids)
            absent.difference_update(ids)
            if not absent or seen >= _MOST:
                break
    return absent if seen < _MOST else set()


async def _last_delivered(link: RedisLink, key: str) -> str:
    """Zero where there is no group; who asks for its pending messages hears of that."""
    groups = {group["name"]: group for group in map(facts, await link.call("XINFO", "GROUPS", key))}
    return str(groups[GROUP]["last-delivered-id"]) if GROUP in groups else "0-0"


def no_such_road(exc: Refused) -> bool:
    """Is it that the stream or its group is not there?"""
    return "NOGROUP" in str(exc) or "no such key" in str(exc)


async def _pages(link: RedisLink, command: str, *named: str) -> AsyncGenerator[list[Any], None]:
    start, seen = "-", 0
    while seen < _MOST:
        rows = await link.call(command, *named, start, "+", _PAGE)
        yield rows
        seen += len(rows)
        if len(rows) < _PAGE:
            return
        start = f"({rows[-1][0]}"


async def _messages(
    link: RedisLink, key: str, start: str, end: str
) -> AsyncGenerator[tuple[list[str], list[str]], None]:
    """Receipts and what they name, page by page."""
    seen = 0
    while seen < _MOST:
        texts = await link.script(scripts.LIST, [key], [start, end, _PAGE])
        receipts, ids = (text.split(" ") if text else [] for text in texts)
        yield receipts, ids
        seen += len(receipts)
        if len(receipts) < _PAGE:
            return
        start = f"({receipts[-1]}"


def facts(flat: Sequence[Any]) -> dict[str, Any]:
    """A flat list of names and values, as RESP2 has it."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
