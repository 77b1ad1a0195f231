"""`/api/v2/jobs/bulk`: one action on all jobs that a filter finds."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2/jobs/bulk", tags=["jobs"])
