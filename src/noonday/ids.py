"""Identifiers that sort by the time of their making, so that index pages stay warm."""

from __future__ import annotations

import os
from datetime import datetime


def new_id(now: datetime) -> str:
    """A version-7 UUID: 48 bits of milliseconds, then chance."""
    millis = int(now.timestamp() * 1000)
    value = (millis << 80) | int.from_bytes(os.urandom(10), "big")
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def first_id(at: datetime) -> str:
    """The lowest id that is made from that moment on; for looking at one end of an index."""
    text = f"{max(int(at.timestamp() * 1000), 0):012x}"
    return f"{text[:8]}-{text[8:]}-0000-0000-000000000000"
