"""API keys as texts: `nd_<prefix>_<secret>`; the prefix is shown, of the whole only a digest is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final

__all__ = ["CHANCE", "START", "digest_of", "fits", "new_key", "prefix_of"]

START: Final = "nd_"
CHANCE: Final = 30  # random bytes that a key is made of: 5 for the prefix, 25 for the secret
_KEY = re.compile(r"nd_([a-z2-7]{8})_[a-z2-7]{40}")


def new_key(chance: bytes) -> str:
    """Small letters and digits alone: a double click takes all of it."""
    if len(chance) != CHANCE:
        raise ValueError(f"a key is made of {CHANCE} bytes")
    return f"{START}{_letters(chance[:5])}_{_letters(chance[5:])}"


def prefix_of(key: str) -> str | None:
    """What a key is found by; nothing for a text that cannot be one."""
    match = _KEY.fullmatch(key)
    return match[1] if match else None


def digest_of(key: str) -> str:
    """Unsalted and fast on purpose: nobody guesses 200 bits of chance."""
    return hashlib.sha256(key.encode()).hexdigest()


def fits(key: str, digest: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(digest_of(key), digest)


def _letters(chance: bytes) -> str:
    return base64.b32encode(chance).decode().lower()
