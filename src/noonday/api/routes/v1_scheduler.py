"""`/api/v1/scheduler`: figures, how the load is spread, and spreading it better."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v1/scheduler", tags=["v1"])
