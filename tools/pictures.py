"""Makes a PNG of a page small: 256 colours are plenty for text and lines, if rare ones are among them."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

__all__ = ["smaller"]

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHANNELS: Final = {2: 3, 6: 4}  # by the type of colour: with and without transparency
_MOST: Final = 256
Colour = tuple[int, int, int]


def smaller(png: bytes) -> bytes:
    """With few colours, each of the others shown as the nearest of them."""
    parts = list(_parts(png))
    header = next(data for kind, data in parts if kind == b"IHDR")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in _CHANNELS or interlaced:
        return png
    size = _CHANNELS[colour]
    packed = b"".join(data for kind, data in parts if kind == b"IDAT")
    rows = list(_rows(zlib.decompress(packed), width, height, size))
    colours = [list(zip(row[0::size], row[1::size], row[2::size], strict=True)) for row in rows]
    counts: Counter[Colour] = Counter()
    for row in colours:
        counts.update(row)
    palette = _few([known for known, _ in counts.most_common()])
    place = {known: _nearest(known, palette) for known in counts}
    lines = b"".join(b"\0" + bytes(place[one] for one in row) for row in colours)
    made = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", b"".join(bytes(known) for known in palette)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return _SIGNATURE + b"".join(_part(kind, data) for kind, data in made)


def _parts(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += 12 + length


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _rows(raw: bytes, width: int, height: int, size: int) -> Iterator[bytes]:
    """Each line is stored as its difference from what lies left of it and above it, in one of five ways."""
    length = width * size
    above = bytes(length)
    for number in range(height):
        start = number * (length + 1)
        above = _undone(raw[start], raw[start + 1 : start + 1 + length], above, size)
        yield above


def _undone(way: int, line: bytes, above: bytes, size: int) -> bytes:
    if way == 0:
        return line
    made = bytearray(line)
    for place in range(len(made)):
        left = made[place - size] if place >= size else 0
        corner = above[place - size] if place >= size else 0
        made[place] = (made[place] + _guess(way, left, above[place], corner)) & 255
    return bytes(made)


def _guess(way: int, left: int, above: int, corner: int) -> int:
    if way < 4:
        return (0, left, above, (left + above) // 2)[way]
    slope = left + above - corner
    return min((left, above, corner), key=lambda one: abs(slope - one))


def _few(colours: list[Colour]) -> list[Colour]:
    """Those that come first and are far enough from each other: a shade may go, a rare colour may not."""
    near = 0
    while True:
        chosen: list[Colour] = []
        for colour in colours:
            if all(_apart(colour, other) > near for other in chosen):
                chosen.append(colour)
            if len(chosen) > _MOST:
                break
        else:
            return chosen
        near = max(near * 2, 12)


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    return min(range(len(palette)), key=lambda place: _apart(colour, palette[place]))


def _apart(one: Colour, other: Colour) -> int:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 + (one[2] - other[2]) ** 2
