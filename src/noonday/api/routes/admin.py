"""`/api/admin/schedulers`: recurring jobs as schedulers that start, stop and fail."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/admin/schedulers", tags=["admin"])
