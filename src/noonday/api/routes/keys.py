"""`/api/v2/keys`: API keys, made and revoked; and who am I?"""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v2/keys", tags=["access"])
