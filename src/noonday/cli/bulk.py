"""`noonday jobs bulk`: one action on all jobs that a search finds, after a look at them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from noonday.api.bulk import done_json, preview_json
from noonday.cli import output, tables
from noonday.cli.asking import confirmed
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import EXIT_CODES, INTERRUPTED
from noonday.cli.flags import Db, Json, Yes
from noonday.cli.searching import Query
from noonday.cli.words import one_of
from noonday.control.bulk import Action, Choice, Preview, choose
from noonday.domain.errors import Conflict

__all__ = ["bulk"]

_NAMED = 10  # names that a question lists
_DONE = {
    Action.PAUSE: "paused",
    Action.RESUME: "resumed",
    Action.CANCEL: "cancelled",
    Action.RUN: "started",
    Action.DELETE: "deleted",
    Action.ENABLE: "enabled",
    Action.DISABLE: "disabled",
}


def bulk(
    action: str,
    /,
    *job: Annotated[str, Parameter(help="Names or ids, in place of a search.")],
    query: Query = None,
    all: bool = False,
    dry_run: bool = False,
    yes: Yes = False,
    json: Json = False,
    database_url: Db = None,
) -> int:
    """Do the same with many jobs: pause, resume, cancel, run, delete, enable or disable them.

    Parameters
    ----------
    action:
        pause, resume, cancel, run, delete, enable or disable.
    all:
        Every job there is, in place of a search.
    dry_run:
        Only list the jobs it would be.
    """
    wanted = Action(one_of("ACTION", action, [one.value for one in Action]))

    async def work(desk: Desk) -> int:
        choice = choose(query, job or None, desk.clock.now(), all=all, called="--query")
        seen = await desk.bulk.preview(choice)
        if dry_run:
            _show(wanted, seen, json=json)
            return 0
        if not seen.matched and choice.named is None:
            output.say("no job matches: nothing was done")
            return 0
        if not confirmed(_question(wanted, seen), yes=yes):
            return INTERRUPTED
        return await _act(desk, wanted, choice, seen, json=json)

    return at_desk(work, database_url)


async def _act(desk: Desk, action: Action, choice: Choice, seen: Preview, *, json: bool) -> int:
    """Just what was looked at: should another number match by now, nothing is done."""
    done = await desk.bulk.act(action, choice, desk.by, expect=seen.matched)
    if json:
        output.data(done_json(action, done))
    unchanged = f", {done.unchanged:,} so already" if done.unchanged else ""
    output.say(f"{_DONE[action]} {done.done:,} of {_jobs(done.matched)}{unchanged}")
    output.say(*(f"noonday: {failure.name}: {failure.error}" for failure in done.failed))
    return EXIT_CODES[Conflict] if done.failed else 0


def _question(action: Action, seen: Preview) -> str:
    names = ", ".join(job.name for job in seen.jobs[:_NAMED])
    more = f" and {seen.matched - _NAMED:,} more" if seen.matched > _NAMED else ""
    return f"{action.value.capitalize()} {_jobs(seen.matched)} ({names}{more})?"


def _show(action: Action, seen: Preview, *, json: bool) -> None:
    if json:
        output.data(preview_json(action, seen))
        return
    if seen.jobs:
        tables.table(["name", "state"], [[job.name, tables.state(job.state.value)] for job in seen.jobs])
    more = f", of which the first {len(seen.jobs)} are shown" if seen.matched > len(seen.jobs) else ""
    output.say(f"would {action.value} {_jobs(seen.matched)}{more}")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
