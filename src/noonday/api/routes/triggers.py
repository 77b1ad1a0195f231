"""`/api/v2/triggers`: which webhooks and channels start which jobs."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2/triggers", tags=["triggers"])
