"""`noonday jobs run`: a forced run, followed to its end if asked."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated

from cyclopts import Parameter

from noonday.api.schemas import execution_json
from noonday.cli import output, showing, values
from noonday.cli.adding.texts import json_value
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.execution import Execution, ExecutionState

__all__ = ["RESULT_CODES", "TIRED", "run"]

RESULT_CODES = {
    ExecutionState.COMPLETED: 0,
    ExecutionState.FAILED: 1,
    ExecutionState.CANCELLED: 7,
    ExecutionState.SKIPPED: 8,
}
TIRED = 124  # --timeout passed; the run goes on
_LOOK_AGAIN = 0.2
_QUIET = timedelta(seconds=5)  # so long may a run wait for a worker before we say that something is missing


def run(
    job: str,
    /,
    *,
    config: str | None = None,
    wait: Annotated[bool, Parameter(alias="-w")] = False,
    timeout: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> int:
    """Run a job now, beside its schedule, also if it is paused.

    Parameters
    ----------
    job:
        Name or id.
    config:
        A JSON object, or @file, in place of the job's own config.
    wait:
        Follow the run to its end: exit code 0 completed, 1 failed, 7 cancelled, 8 skipped.
    timeout:
        With --wait: follow no longer than this (5m) and exit with 124; the run goes on.
    """
    if timeout and not wait:
        raise Invalid(Problem("--timeout", "goes with --wait"))
    patience = values.duration("--timeout", timeout) if timeout else None
    given = json_value("--config", config) if config else None
    if given is not None and not isinstance(given, dict):
        raise invalid("--config", config, "must be a JSON object")

    async def work(desk: Desk) -> int:
        found = await desk.job(job)
        execution = await desk.jobs.force_run(found.id, desk.by, config=given)
        output.say(f"run {execution.id} of {found.name} is on the road")
        if wait:
            execution = await _follow(desk, execution, patience)
        if json:
            output.data(execution_json(execution))
        elif wait and execution.result.output_tail:
            print(output.clean(execution.result.output_tail.rstrip()))
        return RESULT_CODES.get(execution.state, TIRED) if wait else 0

    return at_desk(work, database_url)


async def _follow(desk: Desk, execution: Execution, patience: timedelta | None) -> Execution:
    since, told, warned = desk.clock.now(), "", False
    while execution.state.open and not _over(since, desk.clock.now(), patience):
        await asyncio.sleep(_LOOK_AGAIN)
        execution = await desk.executions.get(execution.id)
        words = _words(execution)
        if words != told:
            output.say(words)
            told = words
        if not warned and execution.attempt == 0 and _over(since, desk.clock.now(), _QUIET):
            warned = True
            output.say("still waiting for a worker: is `noonday serve` running on this database?")
    return execution


def _over(since: datetime, now: datetime, patience: timedelta | None) -> bool:
    return patience is not None and now - since >= patience


def _words(execution: Execution) -> str:
    words = f"{execution.state}"
    if execution.attempt > 1:
        words += f", attempt {execution.attempt}"
    if execution.progress is not None and execution.state.open:
        words += f", {execution.progress:.0%}"
    reason = showing.run_reason(execution_json(execution), utc=False)
    return f"{words}: {reason}" if reason else words
