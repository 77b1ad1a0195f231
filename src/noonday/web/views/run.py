"""`/ui/runs/{execution}`: one run from its plan to its end, what it wrote, and what can be done with it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.secrets import redacted
from noonday.domain.access import Right
from noonday.domain.errors import NotFound
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job
from noonday.domain.outcome import Result
from noonday.domain.output import plain
from noonday.web import journeys
from noonday.web.pages import Show
from noonday.web.views.runs import CAUSES, why

router = APIRouter(include_in_schema=False)

_SHOWN: Final = 20_000  # characters of output on the page itself, for those without scripts

Ref = Annotated[str, Path(max_length=200)]
Which = Annotated[int | None, Query(ge=1, le=1 << 31)]


@router.get("/ui/runs/{execution}", dependencies=[needs(Right.READ)])
async def run(execution: Ref, show: Show, ask: Ask, who: Who, attempt: Which = None) -> Response:
    found = await ask.executions.get(execution)
    attempts = await ask.executions.attempts(found.id)
    around = await ask.executions.around(found, own_service(who))
    running = {found.attempt} if found.state is ExecutionState.RUNNING else set()
    wrote = sorted(running.union(await ask.outputs.attempts(found.id)))
    wanted = attempt if attempt in wrote else None
    text = await ask.outputs.end(found.id, wanted, _SHOWN) if wrote else ""
    return show.html(
        "run.html",
        run=found,
        job=await _job(ask, found),
        why=why(found),
        cause=CAUSES[found.cause],
        around=around,
        compared=journeys.compared(found, around.usual, show.now),
        trace=found.trace if found.attempt else found.trace_id,
        steps=journeys.steps(found, show.now),
        bars=journeys.bars(found, attempts, show.now),
        width=journeys.WIDTH,
        config=_pretty(redacted(found.config)) if found.config else "",
        figures=[] if found.state.open else _figures(found.result),
        value=_pretty(redacted(found.result.value)),
        metadata=_pretty(redacted(dict(found.result.metadata))) if found.result.metadata else "",
        wrote=wrote,
        writes=bool(wrote) or found.state.open,
        attempt=wanted,
        text=plain(text),
        cut=len(text) >= _SHOWN,
    )


@router.get("/ui/runs/{execution}/output.txt", dependencies=[needs(Right.READ)])
async def download(execution: Ref, ask: Ask, attempt: Which = None) -> Response:
    text = await ask.outputs.whole(execution, attempt)
    name = f"run-{execution[:36]}" + (f"-{attempt}" if attempt else "")
    headers = {"Content-Disposition": f'attachment; filename="{name}.txt"'}
    return PlainTextResponse(text, headers=headers)


@router.post("/ui/runs/{execution}/cancel", dependencies=[needs(Right.OPERATE)])
async def cancel(execution: Ref, show: Show, ask: Ask, who: Who) -> Response:
    after = await ask.executions.cancel(execution, who.name)
    note = "The run is asked to stop." if after.state.open else "The run is cancelled."
    return show.back_to(f"/ui/runs/{after.id}", note)


@router.post("/ui/runs/{execution}/again", dependencies=[needs(Right.RUN)])
async def again(execution: Ref, show: Show, ask: Ask, who: Who) -> Response:
    """With the config that this run had; the answer shows the new one."""
    before = await ask.executions.get(execution)
    started = await ask.jobs.force_run(before.job_id, who.name, before.config)
    return show.back_to(f"/ui/runs/{started.id}", "Started again. This is the new run.")


async def _job(ask: Ask, execution: Execution) -> Job | None:
    """Its history may outlive a job for a while."""
    try:
        return await ask.jobs.get(execution.job_id)
    except NotFound:
        return None


def _pretty(value: Any) -> str:
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _figures(result: Result) -> list[tuple[str, str]]:
    """What the run tells in numbers, in words."""
    shown = [
        ("items processed", _number(result.items_processed)),
        ("items succeeded", _number(result.items_succeeded)),
        ("items failed", _number(result.items_failed)),
        ("HTTP status", str(result.status_code or "")),
        ("bytes received", _number(result.bytes_received)),
        ("exit status", "" if result.exit_code is None else str(result.exit_code)),
        ("CPU time", "" if result.usage.cpu_time_ms is None else f"{result.usage.cpu_time_ms:,} ms"),
        ("most memory", "" if result.usage.memory_peak_mb is None else f"{result.usage.memory_peak_mb:,} MB"),
    ]
    return [(word, text) for word, text in shown if text]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
