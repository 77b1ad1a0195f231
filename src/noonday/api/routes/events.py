"""`/api/events`: what happens, as it happens."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["events"])
