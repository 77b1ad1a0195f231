"""Styles, scripts and icons: each file under a name that holds its digest, so that browsers may keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from noonday.api.callers import open_to_all

__all__ = ["address_of", "router"]

_KINDS: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_FOLDER: Final = "/ui/static"
_FOR_EVER: Final = "public, max-age=31536000, immutable"

router = APIRouter(dependencies=[open_to_all], include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _Asset:
    body: bytes
    digest: str
    media_type: str


@lru_cache
def _assets() -> Mapping[str, _Asset]:
    found = {}
    for file in (files("noonday.web") / "static").iterdir():
        body = file.read_bytes()
        kind = _KINDS[PurePosixPath(file.name).suffix]
        found[file.name] = _Asset(body, sha256(body).hexdigest()[:12], kind)
    return found


def version() -> str:
    """Of all assets together: modules import each other by plain names, so they change as one."""
    return sha256("".join(one.digest for one in _assets().values()).encode()).hexdigest()[:12]


def address_of(name: str) -> str:
    """Raises KeyError for a name that is none: a page with a broken link is not shown at all."""
    assert _assets()[name]
    return f"{_FOLDER}/{version()}/{name}"


@router.get(f"{_FOLDER}/{{version}}/{{name}}")
async def asset(version: str, name: str, request: Request) -> Response:
    found = _assets().get(name)
    if found is None:
        raise HTTPException(404)
    headers = {"Cache-Control": _FOR_EVER, "ETag": f'"{found.digest}"'}
    return Response(found.body, media_type=found.media_type, headers=headers)
