"""Bodies that come packed. They are unpacked in small pieces, so that whoever reads them can stop."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from noonday.http_client.errors import BrokeOff

CODINGS: Final = "gzip, deflate"
_PIECE: Final = 64 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS


class Unpacker:
    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inflate = zlib.decompressobj(_GZIP) if gzip else None  # what deflate means, its first byte says
        self._fed = False

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """In pieces. Raises BrokeOff for what was not packed like this."""
        while data:
            self._fed = True
            inflate = self._inflate
            if inflate is None or (inflate.eof and self._gzip):  # another member may follow
                inflate = self._inflate = zlib.decompressobj(_GZIP if self._gzip else _deflate_kind(data))
            try:
                piece = inflate.decompress(data, _PIECE)
            except zlib.error as exc:
                raise BrokeOff("it cannot be unpacked") from exc
            data = inflate.unconsumed_tail or (inflate.unused_data if self._gzip else b"")
            if piece:
                yield piece

    @property
    def whole(self) -> bool:
        """Was all unpacked that was packed?"""
        return not self._fed or (self._inflate is not None and self._inflate.eof)


def _deflate_kind(data: bytes) -> int:
    """Two things are called deflate: a zlib stream, as it should be, and a bare one."""
    return zlib.MAX_WBITS if data[0] & 0x0F == 8 else _RAW


def unpacker_of(coding: str) -> Unpacker | None:
    """None for what is not packed, or in a way that was not asked for: such bytes are kept as they came."""
    match coding.strip().lower():
        case "gzip" | "x-gzip":
            return Unpacker(gzip=True)
        case "deflate":
            return Unpacker(gzip=False)
        case _:
            return None
