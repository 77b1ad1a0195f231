"""`/`: is all well? Who leads, what runs, waits and fails, and the hours around now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.overview import LATE_AFTER, Concern, Glance, concerns
from noonday.domain.access import Right
from noonday.web.pages import Show
from noonday.web.pulse import drawn

router = APIRouter(include_in_schema=False)

LATE: Final = f"/ui/runs?q=status:queued,pending+due:%3E{LATE_AFTER.seconds}s"


@dataclass(frozen=True, slots=True)
class _Worry:
    look: str  # the icon
    words: str
    address: str


@router.get("/", dependencies=[needs(Right.READ)])
async def overview(show: Show, ask: Ask, who: Who) -> Response:
    own = own_service(who)
    glance, pulse = await asyncio.gather(ask.overview.glance(own), ask.overview.pulse(own))
    return show.html(
        "overview.html",
        glance=glance,
        worries=[_worry(concern, glance) for concern in concerns(glance)],
        pulse=drawn(pulse, show.reader.zone),
        late=LATE,
        server=str(show.request.base_url).rstrip("/"),
    )


def _worry(concern: Concern, glance: Glance) -> _Worry:
    match concern:
        case Concern.NO_INSTANCE:
            return _Worry("bad", "No instance is alive: nothing is planned and nothing runs", "/ui/workers")
        case Concern.NO_LEADER:
            return _Worry("bad", "Nobody leads: nothing new is planned", "/ui/workers")
        case Concern.NO_WORKER:
            return _Worry("bad", "No worker takes work: what is due waits", "/ui/workers")
        case Concern.SILENT:
            return _Worry(
                "held", _counted(glance.silent, "instance is silent", "instances are silent"), "/ui/workers"
            )
        case Concern.LATE:
            return _Worry("held", _counted(glance.runs.late, "run is late", "runs are late"), LATE)
        case Concern.FAILING:
            words = _counted(
                glance.jobs.failing, "job failed when it last ran", "jobs failed when they last ran"
            )
            return _Worry("bad", words, "/ui/jobs?q=last_status:failed")
        case Concern.BREAKER:
            words = _counted(glance.held_back, "target is held back", "targets are held back")
            return _Worry("held", words, "/ui/breakers?q=state:open,half_open")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
