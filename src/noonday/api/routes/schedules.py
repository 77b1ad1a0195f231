"""`/api/v2/schedules/preview`: any schedule in words, with its next times, before it is saved."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from fastapi import Depends, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.bodies import PreviewBody
from noonday.api.callers import needs
from noonday.api.schedules import instant_text, read_instant, to_timing
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import PreviewShape
from noonday.control.explain import preview
from noonday.domain.access import Right

router = Router(
    prefix="/api/v2/schedules", tags=["schedules"], dependencies=[Depends(v2_is_on), needs(Right.READ)]
)


@router.post("/preview", responses={200: {"model": PreviewShape}}, summary="Explain a schedule")
async def explain(body: PreviewBody, ask: Ask) -> Response:
    timing = to_timing(body, ask.clock.now())
    zone = ZoneInfo(timing.timezone)
    after = read_instant("after", body.after, zone) if body.after else ask.clock.now()
    found = await run_in_threadpool(preview, timing, body.job_id or "", body.count, after)
    return JSONResponse(
        {
            "schedule_type": timing.schedule.type,
            "schedule_words": found.words,
            "timezone": timing.timezone,
            "next_runs": [instant_text(at) for at in found.times],
            "next_runs_local": [at.astimezone(zone).isoformat() for at in found.times],
        }
    )
