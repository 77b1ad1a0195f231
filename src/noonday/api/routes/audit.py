"""`/api/v2/audit`: who changed what; and back to how it was."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2", tags=["audit"])
