"""`/api/v1/jobs`: jobs as the first version knew them."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v1/jobs", tags=["v1"])
