"""`/api/jobs`: services declare their jobs, people look after them."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/jobs", tags=["registry"])
