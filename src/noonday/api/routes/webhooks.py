"""`/api/v2/triggers/webhook`: calls from outside that start jobs."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2/triggers", tags=["triggers"])
