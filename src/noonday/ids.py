"""Identifiers that sort by the time of their making, so that index pages stay warm."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Final


def new_id(now: datetime) -> str:
    """A version-7 UUID: 48 bits of milliseconds, then chance."""
    millis = int(now.timestamp() * 1000)
    value = (millis << 80) | int.from_bytes(os.urandom(10), "big")
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_VARIANTS: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def new_ids(now: datetime, count: int) -> list[str]:
    """As many of them at once, in their order."""
    millis = f"{int(now.timestamp() * 1000):012x}"
    head = f"{millis[:8]}-{millis[8:]}-7"
    chance = os.urandom(10 * count).hex()
    parts = [chance[at : at + 19] for at in range(0, 20 * count, 20)]
    made = [f"{head}{part[:3]}-{_VARIANTS[part[3]]}{part[4:7]}-{part[7:]}" for part in parts]
    made.sort()
    return made


def first_id(at: datetime) -> str:
    """The lowest id that is made from that moment on; for looking at one end of an index."""
    text = f"{max(int(at.timestamp() * 1000), 0):012x}"
    return f"{text[:8]}-{text[8:]}-0000-0000-000000000000"
