"""docs/ui.md names every page and every key, and the pictures it shows are small."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Final

from tests.web.everywhere import paths
from tools.pictures import smaller

_ROOT: Final = Path(__file__).parents[2]
_TEXT: Final = (_ROOT / "docs" / "ui.md").read_text(encoding="utf-8")
_WEB: Final = _ROOT / "src" / "noonday" / "web"
_MOST_BYTES: Final = 150_000


def test_it_names_every_page() -> None:
    named = set(re.findall(r"`(/[^` ]*)`", _TEXT))
    assert set(paths()) - named == set()


def test_it_explains_every_key() -> None:
    section = _TEXT.partition("## Keyboard")[2].partition("\n## ")[0]
    told = set(re.findall(r"`([^`]+)`", section))
    script = (_WEB / "static" / "keys.js").read_text(encoding="utf-8")
    known = set(re.findall(r'(?:presses\(|key: )"([^"]+)"', script))
    base = (_WEB / "templates" / "base.html").read_text(encoding="utf-8")
    known |= set(re.findall(r'"/[^"]*", "\w+", "(\w)"', base)) | {"Ctrl K"}
    assert len(known) > 20
    assert known - told == set()


def test_its_pictures_are_there_and_small() -> None:
    pages = [_ROOT / "README.md", *(_ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+\.png)", page.read_text("utf-8"))}
    found = {path.name: path.stat().st_size for path in (_ROOT / "docs" / "images").iterdir()}
    assert set(found) == shown
    assert [name for name, size in found.items() if size > _MOST_BYTES] == []


def test_a_small_picture_keeps_a_rare_colour() -> None:
    shades = [(grey, grey, grey + blue) for grey in range(100, 200) for blue in range(5)]
    rows = [[*shades, (250, 120, 20)], [*shades[::-1], (255, 255, 255)]]
    lines = b"".join(b"\0" + b"".join(map(bytes, row)) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    made = smaller(_png((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")))
    palette = made[made.index(b"PLTE") + 4 :][: 3 * 256]
    pixels = zlib.decompressobj().decompress(made[made.index(b"IDAT") + 4 :])
    assert len(pixels) == 2 * (1 + len(rows[0]))
    last = pixels[len(rows[0])]
    assert tuple(palette[3 * last : 3 * last + 3]) == (250, 120, 20)


def _png(*parts: tuple[bytes, bytes]) -> bytes:
    packed = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
