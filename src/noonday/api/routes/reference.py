"""`/docs`: the API described on one page that needs no network."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="", tags=["documents"])
