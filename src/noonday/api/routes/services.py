"""`/api/v2/services`: where services live."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2/services", tags=["services"])
